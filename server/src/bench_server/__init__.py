"""Trainmark's server: keeps signed results, ranks and compares them."""

__version__ = "0.1.0"
