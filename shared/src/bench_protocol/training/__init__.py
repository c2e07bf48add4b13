"""Whether the training was right: traces, witness, limits, verdicts."""
