"""Exit codes of ``bench-agent``, and how a command stops."""

from enum import IntEnum
from typing import NoReturn

import typer


class Exit(IntEnum):
    """Exit codes that scripts rely on."""

    DONE = 0
    SOME_FAILED = 1
    WRONG_USAGE = 2
    SERVER_UNREACHABLE = 3
    NOT_IDLE = 4
    INTERRUPTED = 130


def stop(code: Exit, message: str) -> NoReturn:
    """End a command with a message for people and the code for scripts."""
    from ..output.console import complain  # here: --help and --version need no console

    complain(message)
    raise typer.Exit(code)
