"""Sign a result: from a worker's answer to a signed envelope."""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload import statement
from bench_protocol.payload.machine import Environment, Machine
from bench_protocol.payload.readings import Conditions, Telemetry
from bench_protocol.payload.result import SCHEMA_VERSION, Agent, Asked, Challenge, Clocks, Result
from bench_protocol.signing import envelope
from bench_protocol.signing.keys import key_id

from .. import __version__
from ..base.messages import Answer
from ..remote.client import utc_text
from .interpreters import python_version


@dataclass(frozen=True)
class Moment:
    """Both clocks at one moment: wall, and monotonic nanoseconds since the run's start."""

    wall: datetime
    since_start_ns: int


class RunClock:
    """Wall and monotonic clock of a run, read together."""

    def __init__(
        self,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall = wall
        self._monotonic_ns = monotonic_ns
        self._zero_ns = monotonic_ns()
        self.started = wall()

    def since_start_ns(self) -> int:
        return self._monotonic_ns() - self._zero_ns

    def now(self) -> Moment:
        return Moment(self._wall(), self.since_start_ns())


@dataclass(frozen=True)
class RunIdentity:
    """The fields that all results of one run share.

    ``own_nonce``: seeds what is measured without a challenge.
    """

    run_id: str
    own_nonce: str
    preset: str
    machine: Machine
    key: Ed25519PrivateKey
    clock: RunClock
    challenge: Challenge | None = None

    @property
    def nonce(self) -> str:
        """The challenge's nonce, or the agent's own."""
        return self.challenge.nonce if self.challenge else self.own_nonce

    def seed_of(self, cell: Cell) -> str:
        """The seed of a cell's session."""
        return nonces.seed_of(self.nonce, cell.workload_digest, "timed")


def make_result(
    run: RunIdentity,
    cell: Cell,
    repeat: int,
    answer: Answer,
    started: Moment,
    finished: Moment,
    before: Conditions,
    telemetry: Telemetry,
    python: str | None = None,
    asked: Asked | None = None,
) -> Result:
    """Build the result that will be signed. This reads the clocks for the last time.

    Args:
        python: the worker's interpreter; None for the agent's own.
        asked: the server's ask that it answers.
    """
    signed = run.clock.now()
    return Result(
        schema_version=SCHEMA_VERSION,
        run_id=run.run_id,
        repeat=repeat,
        cell=cell,
        seed=run.seed_of(cell),
        preset=run.preset,
        challenge=run.challenge,
        nonce=None if run.challenge else run.own_nonce,
        agent=Agent(version=__version__, key_id=key_id(run.key.public_key())),
        machine=run.machine,
        environment=answer.environment or unknown_environment(python),
        outcome=answer.outcome,
        clocks=Clocks(
            run_started=utc_text(run.clock.started),
            started=utc_text(started.wall),
            started_ns=started.since_start_ns,
            finished_ns=finished.since_start_ns,
            signed=utc_text(signed.wall),
            signed_ns=signed.since_start_ns,
        ),
        conditions=before,
        telemetry=telemetry,
        warnings=answer.warnings,
        asked=asked,
    )


def sign(result: Result, key: Ed25519PrivateKey) -> bytes:
    """The envelope's bytes."""
    return envelope.seal(statement.RESULT_PAYLOAD_TYPE, statement.result_payload(result), key)


def unknown_environment(python: str | None) -> Environment:
    """The environment of a worker that ended before it reported one."""
    return Environment(
        python=python_version(python) if python else platform.python_version(), packages={}
    )
