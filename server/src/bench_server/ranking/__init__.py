"""Figures and what follows from them: medians, aggregates, ranks, scores, reproduction."""
