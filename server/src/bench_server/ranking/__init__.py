"""Figures and what follows from them: medians, aggregates, scores, peak rates."""
