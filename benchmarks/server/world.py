"""The results of a benchmark: twenty kinds of hardware, many machines of each, whole runs.

A machine has a key and an owner of its own and measures eight workloads in two set-ups, three
repeats each: 48 results a run. A database of more results has more machines, not more kinds of
hardware, so that a board has the same rows and each row more behind it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import update
from tests.fakes import results

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.payload import statement
from bench_protocol.payload.machine import Environment, Machine
from bench_protocol.payload.readings import Energy, Telemetry
from bench_protocol.payload.result import Challenge, Clocks, Result
from bench_protocol.signing import envelope
from bench_server.db.store import Store
from bench_server.db.tables import Challenge as ChallengeRow
from bench_server.db.tables import table_of
from bench_server.settings import DEFAULT_ORIGIN as ORIGIN

GPUS = tuple(
    f"NVIDIA {name}"
    for name in (
        *("H200", "H100 80GB HBM3", "A100-SXM4-80GB", "L40S", "L4", "GeForce RTX 5090"),
        *("GeForce RTX 4090", "GeForce RTX 4080", "GeForce RTX 3090", "GeForce RTX 3070"),
    )
)
CPUS = tuple(
    f"{maker} {number}"
    for maker, numbers in (
        ("Intel Core", ("i7-8700", "i9-13900K", "i5-12400", "i7-1185G7")),
        ("AMD Ryzen", ("9 7950X", "7 5800X", "5 5600")),
        ("AMD EPYC", ("7763", "9654", "7402P")),
    )
    for number in numbers
)
KINDS = len(GPUS) + len(CPUS)
RECIPES = ("naive", "tuned")
REPEATS = 3
RUN = len(CATALOGUE) * len(RECIPES) * REPEATS
BLOCKS = 30
SECONDS = 36
# These stand in a template for a run's own.
RUN_ID = "5" * 32
# A whole day, so that any repeat fits into it; the challenge must be as old (:func:`age`).
RUN_SECONDS = 86_400
CLOCKS = Clocks(
    run_started="2026-11-21T03:42:00.000000Z",
    started="2026-11-21T03:42:00.000000Z",
    signed="2026-11-22T03:42:00.000000Z",
    started_ns=1_000,
    finished_ns=RUN_SECONDS * 10**9,
    signed_ns=RUN_SECONDS * 10**9,
)
STANDS_IN = Challenge(id="6" * 32, nonce="7" * 64, server_origin=ORIGIN)


def machine(number: int) -> Machine:
    """The machine of this number; those of one kind are ``KINDS`` apart."""
    kind = number % KINDS
    name = (*GPUS, *CPUS)[kind]
    if kind < len(GPUS):
        return results.make_machine(gpu=("cuda", name, None), seed=number + 1)
    return results.make_machine(name, seed=number + 1)


def cells(number: int) -> list[Cell]:
    """What a machine measures."""
    device = Device(kind="cuda" if number % KINDS < len(GPUS) else "cpu")
    return [
        results.make_cell(workload.name, recipe=recipe, device=device)
        for workload in CATALOGUE
        for recipe in RECIPES
    ]


def step_ns(number: int, cell: int, repeat: int) -> int:
    """Time of a step at 1 TFLOP/s and more, on CPUs at 50 GFLOP/s and more: kinds differ by a tenth
    each, machines of a kind by 15 % at most."""
    workload = CATALOGUE[cell // len(RECIPES)]
    flops = workload.training_flops_per_sample * workload.batch_size
    kind = number % KINDS
    base = 1_000_000 + flops / (1e3 if kind < len(GPUS) else 50) / 1.1**kind
    return int(base * (1 + (number * 7919 % 1000) / 6667 + repeat * 0.003))


@dataclass(frozen=True)
class Sender:
    """A machine that posts: its number and its key."""

    number: int
    key: Ed25519PrivateKey

    def results(self) -> list[Result]:
        """A run: 48 results, of about 7 kB each: 30 blocks, all evidence, a sample a second."""
        return [
            self._result(number, cell, repeat)
            for number, cell in enumerate(cells(self.number))
            for repeat in range(1, REPEATS + 1)
        ]

    def _result(self, number: int, cell: Cell, repeat: int) -> Result:
        own_ns = step_ns(self.number, number, repeat)
        whole_ns = BLOCKS * 10 * own_ns
        measurement = results.make_measurement(
            cell,
            own_ns,
            BLOCKS,
            energy=Energy(
                source="rapl", scope="cpu_package", energy_mj=whole_ns // 20_000, window_ns=whole_ns
            ),
        )
        columns = {
            "cpu_utilisation_percent": 97.5,
            "cpu_clock_mhz": 3412.25,
            "cpu_temperature_celsius": 71.5,
            "memory_used_bytes": 4_273_741_824.0,
            "package_watts": 64.125,
        }
        return results.make_result(
            key=self.key,
            cell=cell,
            machine=machine(self.number),
            measurement=measurement,
            run_id=RUN_ID,
            repeat=repeat,
            challenge=STANDS_IN,
            clocks=CLOCKS,
            environment=_environment(),
            telemetry=Telemetry(
                at_ns=tuple(second * 1_000_000_000 for second in range(SECONDS)),
                columns={
                    name: tuple(value + second / 8 for second in range(SECONDS))
                    for name, value in columns.items()
                },
            ),
        )


@dataclass(frozen=True)
class Run:
    """A run to send, bound to a challenge of its own."""

    sender: Sender
    number: int
    challenge: Challenge

    def envelopes(self) -> Iterator[bytes]:
        """Its results, signed."""
        own = (
            (RUN_ID, f"{self.number:032x}"),
            (STANDS_IN.id, self.challenge.id),
            (STANDS_IN.nonce, self.challenge.nonce),
        )
        for payload in _payloads(self.sender):
            for stands_in, value in own:
                payload = payload.replace(stands_in.encode(), value.encode())
            yield envelope.seal(statement.RESULT_PAYLOAD_TYPE, payload, self.sender.key)


@cache
def _payloads(sender: Sender) -> list[bytes]:
    return [statement.result_payload(result) for result in sender.results()]


def in_turns(runs: Sequence[Run], clients: int) -> Iterator[bytes]:
    """Envelopes in the order in which so many clients send whole runs at the same time."""
    for start in range(0, len(runs), clients):
        for together in zip(
            *(run.envelopes() for run in runs[start : start + clients]), strict=True
        ):
            yield from together


def write(path: Path, envelopes: Iterator[bytes]) -> int:
    """Write envelopes a line each; returns their number."""
    count = 0
    with path.open("wb") as file:
        for raw in envelopes:
            count += file.write(raw + b"\n") > 0
    return count


def challenge_of(answer: bytes) -> Challenge:
    """The challenge in the server's answer."""
    given = json.loads(answer)
    return Challenge(id=given["id"], nonce=given["nonce"], server_origin=given["server_origin"])


def age(store: Store) -> None:
    """Make unused challenges as old as their runs are long."""
    challenges = table_of(ChallengeRow)
    issued_at = datetime.now(UTC) - timedelta(seconds=RUN_SECONDS)
    unused = challenges.c.used.is_(False)
    with store.writing() as session:
        session.execute(update(challenges).where(unused).values(issued_at=issued_at))


def _environment() -> Environment:
    packages = {f"package-{number}": f"1.{number}.0" for number in range(12)}
    return Environment(
        python="3.11.7",
        packages={"tensorflow": "2.18.1", "keras": "3.15.1", "numpy": "2.0.2", **packages},
        libraries={"onednn": "on", "blas": "openblas 0.3.29"},
        settings={"OMP_NUM_THREADS": "6", "TF_ENABLE_ONEDNN_OPTS": "1"},
    )
