"""Whether the training was right: readings, limits, verdicts, accuracy."""
