"""The protocol shared by agent and server: models, signatures, log, statistics. Imports neither of
them, and no training framework."""

__version__ = "0.2.0"
