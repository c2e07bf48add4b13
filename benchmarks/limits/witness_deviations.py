"""How far readings of real sessions are from their recomputation. Limits of the witness rest on
this."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from bench_agent import data, engines
from bench_agent.engines.seam import Data, HasForms, Session, Start
from bench_agent.worker import forms, witness
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.nonces import seed_of
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import Witness
from bench_protocol.recompute import figures
from bench_protocol.training.reading import is_steady, parts
from bench_protocol.training.recomputed import Figures
from bench_protocol.training.witness_verdict import LEAST_MOVEMENT, LOSS_FLOOR, deviation, judge


def forms_of(cell: Cell, asked: str) -> tuple[str, ...]:
    """The forms that ``asked`` names: one, ``all``, or an empty name for the plain one."""
    engine = engines.engine_named(cell.framework)
    found = engine.forms(cell) if asked == "all" and isinstance(engine, HasForms) else ()
    return found or ("" if asked == "all" else asked,)


def line(sessions: Sequence[dict[str, Any]]) -> str:
    """The largest deviations of a loss and of a movement in each kind of reading, and how many
    sessions are not conformant."""
    largest: dict[str, list[float]] = {}
    for session in sessions:
        for name, values in session["off"].items():
            before = largest.get(name, [0.0] * len(values))
            largest[name] = list(map(max, before, values))
    wrong = sum(session["verdict"] != "conformant" for session in sessions)
    shown = (
        f"{name} {' '.join(f'{off:.1e}' for off in offs[:2])}" for name, offs in largest.items()
    )
    return f"{', '.join(shown)} (loss, movement); {wrong} of {len(sessions)} not conformant"


def sessions(
    cell: Cell, nonces: Sequence[str], form: str = "", kept: Path | None = None
) -> Iterator[dict[str, Any]]:
    """A row for each nonce: the cell, the deviations of loss, of the farthest movement and of the
    median movement by kind of reading, the verdict, and the part of its limit that the value
    closest to it takes. One session makes the readings of all nonces, so that each costs a few
    steps.

    Args:
        form: of the cell's step; empty for the plain one.
        kept: the folder of recomputations that were made before.
    """
    workload = workload_named(cell.workload)
    engine = engines.engine_named(cell.framework)
    engine.load(workload, cell)
    if form:
        forms.take(engine, form)
    train, *_, test = data.load(workload.data_set, "generated")
    order = seeded.order(workload.data_set.train_samples, 0)
    samples = Data(*train, *test, order)
    session = engine.open(workload, cell, seeded.initial_weights(workload), samples)
    session.train_block(1)
    for nonce in nonces:
        seed = seed_of(nonce, workload.digest)
        told = _readings(session, workload, cell, seed, samples)
        right = recomputed(cell.workload, nonce, cell.batch_size, kept)
        off: dict[str, list[float]] = {}
        if right.start_loss is not None:
            start = (right.start_loss, right.start_loss)
            off["start"] = [deviation(told.start_loss or 0.0, start, LOSS_FLOOR)]
        done = parts(workload, cell.batch_size, seed)
        for part, reading, known in zip(done, told.readings, right.readings, strict=False):
            ranges = zip(reading.movements, known.movement_ranges, strict=True)
            moved = [deviation(norm or 0.0, ends, LEAST_MOVEMENT) for norm, ends in ranges]
            loss = deviation(reading.loss or 0.0, known.loss_range, LOSS_FLOOR)
            kind = "steady" if is_steady(workload) else part.kind
            offs = [loss, max(moved), median(moved)]
            off[kind] = list(map(max, off.get(kind, offs), offs))
        verdict = judge(cell, workload, seed, told, right, settings=session.settings)
        shown = cell.model_dump(mode="json", include={"workload", "framework", "precision"})
        shown |= {"device": cell.device.kind, "recipe": cell.recipe, "form": form}
        shown |= {"nonce": int(nonce, 16), "off": off}
        if verdict.deviation is not None and verdict.limit:
            shown["share_of_limit"] = verdict.deviation / verdict.limit
        yield {**shown, "verdict": verdict.kind, "sentence": verdict.sentence}
    session.close()


def _readings(
    session: Session, workload: Workload, cell: Cell, seed: str, samples: Data
) -> Witness:
    """The start loss and the readings of a session whose seed this is."""
    order = seeded.order(workload.data_set.train_samples, 0, seed)
    weights = seeded.initial_weights(workload, seed)
    session.restart(Start(weights, (order,), 0, dropout=False))
    evaluated = witness.evaluated_start(session, workload, cell, replace(samples, order=order))
    session.train_block(1)
    session.sync()
    start_loss = witness.start_loss(session, evaluated)
    calls = witness.Calls(forms.STEPS_PER_CALL, witness.untimed)
    return witness.read(session, workload, cell, seed, start_loss, calls)


def recomputed(workload: str, nonce: str, batch_size: int, kept: Path | None) -> Figures:
    """The recomputation of a session: the kept one, or one that is made and kept."""
    made = workload_named(workload)
    path = kept and kept / f"{made.digest[:16]}-{int(nonce, 16)}-{batch_size}.json"
    if path and path.exists():
        return Figures.model_validate_json(path.read_text())
    found = figures(made, nonce, batch_size)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(found.model_dump_json())
        part.replace(path)
    return found


def append(file: Path, row: dict[str, Any]) -> None:
    """Add a row to a file of JSON lines."""
    with file.open("a") as lines:
        lines.write(json.dumps(row) + "\n")
