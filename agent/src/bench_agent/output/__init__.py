"""Output: live progress, summaries, reports."""
