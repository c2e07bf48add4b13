"""What a run shows: live progress, events, summaries, reports."""
