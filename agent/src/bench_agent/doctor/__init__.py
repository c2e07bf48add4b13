"""What will run on this machine, what will not, why, and the command that mends it."""

from .finding import Finding, Verdict, exit_code
from .table import CHECKS, examine

__all__ = ["CHECKS", "Finding", "Verdict", "examine", "exit_code"]
