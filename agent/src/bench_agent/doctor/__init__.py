"""What will run on this machine, what will not, why, and the command that mends it."""

from .finding import Finding, Status, exit_code
from .table import CHECKS, examine

__all__ = ["CHECKS", "Finding", "Status", "examine", "exit_code"]
