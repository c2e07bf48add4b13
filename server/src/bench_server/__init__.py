"""Trainmark's server: keeps signed results, ranks and compares them."""

__version__ = "0.2.0"
