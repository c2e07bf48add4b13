"""Watch a machine: measure a chosen set again when something changed, and say what moved."""
