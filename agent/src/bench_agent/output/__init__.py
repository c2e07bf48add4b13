"""Output: live progress, events, summaries, reports."""
