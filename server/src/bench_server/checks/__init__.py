"""What is checked of a result: pure functions of it, its challenge and its recomputation."""
