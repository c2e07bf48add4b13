"""Shared by engines on the CPU: BLAS, chains of a batch, memory allocation."""
