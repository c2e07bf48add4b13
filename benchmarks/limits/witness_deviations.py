"""How far readings of real sessions are from their recomputation. Limits of the witness rest on
this."""

from collections.abc import Sequence

from bench_agent import engines
from bench_agent.base.messages import ReadTask
from bench_agent.worker import forms
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.nonces import seed_of
from bench_protocol.recompute import figures
from bench_protocol.training.reading import parts
from bench_protocol.training.witness_verdict import LEAST_MOVEMENT, LOSS_FLOOR, deviation, judge


def line(cell: Cell, nonces: Sequence[str]) -> str:
    """The largest deviations of a loss and of a movement in each kind of reading, and how many
    sessions are not conformant."""
    largest: dict[str, list[float]] = {}
    wrong = 0
    for nonce in nonces:
        off, kind = measured(cell, nonce)
        wrong += kind != "conformant"
        for name, values in off.items():
            before = largest.get(name, [0.0] * len(values))
            largest[name] = list(map(max, before, values))
    shown = (f"{name} {' '.join(f'{off:.1e}' for off in offs)}" for name, offs in largest.items())
    return f"{', '.join(shown)} (loss, movement); {wrong} of {len(nonces)} not conformant"


def measured(cell: Cell, nonce: str) -> tuple[dict[str, list[float]], str]:
    """The deviations of each kind of reading of one session, and the kind of its verdict."""
    workload = workload_named(cell.workload)
    seed = seed_of(nonce, workload.digest)
    engine, right = engines.engine_named(cell.framework), figures(workload, nonce, cell.batch_size)
    engine.load(workload, cell)
    told, settings = forms.read(engine, ReadTask(workload=workload, cell=cell, nonce=nonce))
    start = (right.start_loss, right.start_loss)
    off = {"start": [deviation(told.start_loss or 0.0, start, LOSS_FLOOR)]}
    done = parts(workload, cell.batch_size, seed)
    for part, reading, known in zip(done, told.readings, right.readings, strict=False):
        moved = zip(reading.movements, known.movement_ranges, strict=True)
        off[part.kind] = [
            deviation(reading.loss or 0.0, known.loss_range, LOSS_FLOOR),
            max(deviation(norm or 0.0, ends, LEAST_MOVEMENT) for norm, ends in moved),
        ]
    return off, judge(cell, workload, seed, told, right, settings=settings).kind
