"""What agent and server agree on. Imports neither of them, and no training framework."""

__version__ = "0.1.0"
