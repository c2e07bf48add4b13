"""Checks of a result: pure functions of the result, its challenge and its recomputation."""
