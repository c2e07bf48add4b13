"""The identity and the clocks of a run, and the signature of its results."""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload import statement
from bench_protocol.payload.doubts import LEAST_JUMP_SECONDS
from bench_protocol.payload.machine import Environment, Machine
from bench_protocol.payload.result import Challenge, Result
from bench_protocol.signing import envelope

from .interpreters import describe


@dataclass(frozen=True)
class Moment:
    """Both clocks at one moment: wall, and monotonic nanoseconds since the run's start."""

    wall: datetime
    since_start_ns: int


class RunClock:
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

    def jump_seconds(self) -> float:
        """The wall clock's advance beyond the monotonic one since the start: the machine slept, or
        its wall clock was set. 0 up to :data:`LEAST_JUMP_SECONDS`."""
        now = self.now()
        jump = (now.wall - self.started).total_seconds() - now.since_start_ns / 1e9
        return jump if abs(jump) > LEAST_JUMP_SECONDS else 0.0


@dataclass(frozen=True)
class RunIdentity:
    """The fields that all results of one run share; ``own_nonce`` seeds what has no challenge."""

    run_id: str
    own_nonce: str
    preset: str
    machine: Machine
    key: Ed25519PrivateKey
    clock: RunClock
    challenge: Challenge | None = None

    @property
    def nonce(self) -> str:
        return self.challenge.nonce if self.challenge else self.own_nonce

    def seed_of(self, cell: Cell) -> str:
        return nonces.seed_of(self.nonce, cell.workload_digest)


def sign(result: Result, key: Ed25519PrivateKey) -> bytes:
    return envelope.seal(statement.RESULT_PAYLOAD_TYPE, statement.result_payload(result), key)


def unknown_environment(python: str | None) -> Environment:
    """The environment of a worker that ended before it reported one."""
    there = describe(python, packages=False) if python else None
    version = (there.python if there else "unknown") if python else platform.python_version()
    return Environment(python=version, packages={})
