"""One module for each group of commands; ``cli.py`` gathers them.

Imports stand inside the commands, so that ``--help`` answers at once.
"""
