"""How far readings of real sessions are from their recomputation. Limits of the witness rest on
this."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench_agent import engines
from bench_agent.base.messages import ReadTask
from bench_agent.engines.seam import HasForms
from bench_agent.worker import forms
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.nonces import seed_of
from bench_protocol.recompute import figures
from bench_protocol.training.reading import parts
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
    median movement by kind of reading, and the verdict.

    Args:
        form: of the cell's step; empty for the plain one.
        kept: the folder of recomputations that were made before.
    """
    workload = workload_named(cell.workload)
    engine = engines.engine_named(cell.framework)
    engine.load(workload, cell)
    if form:
        forms.take(engine, form)
    for nonce in nonces:
        seed = seed_of(nonce, workload.digest)
        told, settings = forms.read(engine, ReadTask(workload=workload, cell=cell, nonce=nonce))
        right = recomputed(cell.workload, nonce, cell.batch_size, kept)
        start = (right.start_loss, right.start_loss)
        off = {"start": [deviation(told.start_loss or 0.0, start, LOSS_FLOOR)]}
        done = parts(workload, cell.batch_size, seed)
        for part, reading, known in zip(done, told.readings, right.readings, strict=False):
            ranges = zip(reading.movements, known.movement_ranges, strict=True)
            moved = [deviation(norm or 0.0, ends, LEAST_MOVEMENT) for norm, ends in ranges]
            loss = deviation(reading.loss or 0.0, known.loss_range, LOSS_FLOOR)
            off[part.kind] = [loss, max(moved), median(moved)]
        verdict = judge(cell, workload, seed, told, right, settings=settings)
        shown = cell.model_dump(mode="json", include={"workload", "framework", "precision"})
        shown |= {"device": cell.device.kind, "recipe": cell.recipe, "form": form}
        shown |= {"nonce": int(nonce, 16), "off": off}
        yield {**shown, "verdict": verdict.kind, "sentence": verdict.sentence}


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
