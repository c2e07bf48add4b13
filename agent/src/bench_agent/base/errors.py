"""Errors that a person can fix. Each message says what is wrong and what to do."""

from bench_protocol.base.errors import DataProblem as DataProblem


class UsageProblem(Exception):
    """The command cannot be carried out; the message names the right one."""


class NotIdle(UsageProblem):
    """A strict run found the machine busy, hot or on battery; ``why`` in words."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; without --strict the run continues and records a warning")
        self.why = why


class HomeProblem(Exception):
    """A file of the agent's folder cannot be used; the message says how to fix it."""


class ServerUnreachable(Exception):
    """No usable answer from the server; results stay in the outbox."""


class LogContradiction(ServerUnreachable):
    """The server's log contradicts the one seen before; nothing more is sent to this server."""
