"""JAX's engine."""

from .engine import ENGINE

__all__ = ["ENGINE"]
