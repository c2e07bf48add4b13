"""Doctor: check what runs on this machine and what does not, and name the command that fixes it."""

from .finding import Finding, Status, exit_code
from .table import CHECKS, examine

__all__ = ["CHECKS", "Finding", "Status", "examine", "exit_code"]
