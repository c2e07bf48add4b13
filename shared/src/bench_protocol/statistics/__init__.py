"""Intervals, verdicts, change points and the scales of charts."""
