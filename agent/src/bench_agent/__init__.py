"""Trainmark's agent: plans cells, measures each in a fresh process, signs and posts the results."""

__version__ = "0.2.0"
