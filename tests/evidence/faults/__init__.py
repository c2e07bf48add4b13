"""Planted faults: which check detects which (docs/faults.md)."""
