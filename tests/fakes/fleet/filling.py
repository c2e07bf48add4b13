"""Fill a database with invented results: machines, cells, times, anomalies."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.base.errors import ProtocolError
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.payload.machine import OperatingSystem
from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.ingest import inbox, key_events, moderation
from bench_server.log import writer
from bench_server.log.server_keys import Authority, load_authority
from bench_server.ranking import published
from bench_server.settings import Settings

from .. import results
from ..client import bind
from ..projected import project
from ..trusted import challenge_of
from .hardware import BESIDE, CPUS, CUDA, METAL, environment_of, machine_of
from .measured import Session, cells_of, result_of

MARKUP = '<img src=x onerror=alert(1)>" & Sons'
START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
OWNERS = ("Ada", "Basel lab", "Chiyo", "Diego", "Edda", "Farid", "Grünwald HPC", "Hana")
WORKLOADS = ("mnist-cnn", "fashion-cnn", "cifar100-vgg16", "fashion-mlp", "fashion-lstm")
TWO = ("mnist-cnn", "fashion-mlp")


def make(folder: Path, workloads: Sequence[str] = WORKLOADS) -> str:
    url = f"sqlite:///{folder / 'server.db'}"
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(url)
    migrate.migrate(store.engine)
    fill(store, load_authority(Settings().origin, folder / "server-keys"), workloads)
    store.close()
    return url


def fill(store: Store, authority: Authority, workloads: Sequence[str] = WORKLOADS) -> None:
    """Enroll eight owners, half of them confirmed, and post everything they would have."""
    keys = [results.private_key(seed) for seed in range(1, len(OWNERS) + 1)]
    with store.writing() as session:
        writer.begin(session, authority)
        published.import_published(session)
    for number, (key, owner) in enumerate(zip(keys, OWNERS, strict=True)):
        key_events.accept(results.enrollment(key), store, authority, "open", START)
        whose: dict[str, Any] = {"key": results.key_id(key), "owner": owner}
        moderation.decide(store, authority, START, "assign", **whose)
        if number % 2 == 0:
            moderation.decide(store, authority, START, "confirm", owner=owner)
    fleet = [(kind, number) for kind in (*CUDA, *METAL, *CPUS) for number in range(kind.owners)]
    for place, (kind, number) in enumerate(fleet):
        of_machine = Session(
            keys[(place * 3) % len(keys)],
            kind,
            machine_of(kind, place),
            environment_of(kind),
            START + timedelta(days=place, hours=place % 7),
            random.Random(place).uniform(0.975, 1.025),
        )
        send(store, authority, of_machine, cells_of(kind, workloads, thorough=number == 0))
        if processor := BESIDE.get((kind.name, kind.cores)):
            send(
                store,
                authority,
                replace(of_machine, kind=processor),
                cells_of(processor, workloads, thorough=True),
            )
    _history(store, authority, keys[0])
    _oddities(store, authority, keys[3])


def send(
    store: Store,
    authority: Authority,
    run: Session,
    cells: Iterable[Cell],
    repeats: Sequence[int] = (1, 2, 3),
) -> list[str]:
    """Post the repeats of each cell under one challenge; return the results' ids."""
    bound = challenge_of(store, run.key, run.at, authority)
    made = [
        result_of(
            run,
            cell,
            repeat,
            bound,
            random.Random(f"{run.machine.machine_hash}{run.at}{cell.digest}{repeat}"),
        )
        for cell in cells
        for repeat in repeats
    ]
    span_ns = max(result.clocks.finished_ns for result in made) + 5_000_000_000
    finished = run.at + timedelta(seconds=span_ns / 1e9)
    # All repeats begin with the run and are signed at its end.
    clocks = {"clocks": results.clocks_of(run.at, span_ns)}
    envelopes = [results.sealed(result.model_copy(update=clocks), run.key) for result in made]
    ids = []
    for waiting in inbox.Inbox(store, authority).accept(envelopes, finished):
        answer = waiting.result()
        if isinstance(answer, ProtocolError):
            raise answer
        ids.append(answer.id)
    project(store)
    return ids


def _history(store: Store, authority: Authority, key: Ed25519PrivateKey) -> None:
    """A machine measured every ten days: a new framework makes it faster, a new system slower."""
    kind = next(k for k in METAL if (k.name, k.cores) == ("Apple M2 Max", 30))
    cell = results.make_cell("mnist-cnn", device=Device(kind="metal"), recipe="tuned", data="real")
    for number, (version, system, speed) in enumerate(
        [("2.18.0", "14.6", 1.0)] * 6
        + [("2.18.1", "14.6", 1.11)] * 6
        + [("2.18.1", "15.5", 1.04)] * 6
    ):
        machine = machine_of(kind, 900)
        machine = machine.model_copy(update={"os": OperatingSystem(name="macos", version=system)})
        at = START + timedelta(days=10 * number)
        run = Session(key, kind, machine, environment_of(kind, version), at, speed)
        send(store, authority, run, [cell])


def _oddities(store: Store, authority: Authority, key: Ed25519PrivateKey) -> None:
    """A failure, a wrong parameter count, a flagged result, and names full of markup."""
    at = START + timedelta(days=150)
    kind = CUDA[8]
    gpu = Device(kind="cuda")
    machine = machine_of(kind, 950)
    common: dict[str, Any] = {"key": key, "machine": machine}
    vgg = results.make_cell("cifar100-vgg16", device=gpu, batch_size=128)
    failed = results.make_failure("out_of_memory", "warm_up", cell=vgg, **common)
    cell = results.make_cell("mnist-cnn", device=gpu)
    wrong = results.make_result(
        cell=cell,
        measurement=results.make_measurement(cell, 300_000, parameter_count=93_321),
        **common,
    )
    odd = results.make_result(
        key=key, machine=results.make_machine(MARKUP, seed=951), step_ns=9_000_000
    )
    odd = bind(store, odd, at, authority.origin)
    odd_ones = [results.sealed(result, key) for result in (failed, wrong, odd)]
    for waiting in inbox.Inbox(store, authority).accept(odd_ones, at):
        waiting.result()
    run = Session(key, kind, machine, environment_of(kind), at, 2.4)
    cells = [results.make_cell("mnist-cnn", device=gpu, recipe="tuned", data="real")]
    for identity in send(store, authority, run, cells):
        moderation.decide(
            store, authority, at, "flag", result=identity, reason="measured beside another job"
        )
