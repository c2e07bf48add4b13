"""The witness: evidence of training, read from the timed session (docs/methodology.md).

The start loss is that of the first step, all else is read after the last block: nothing is added to
a block. Last of all the session makes its readings: it trains parts of its job again, in calls as
long as the blocks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Blocks, Measurement
from bench_protocol.payload.witness import Movements, Reading, Witness, trained_tensors
from bench_protocol.training.pace import DOUBTFUL_PACE, compared, pace_of
from bench_protocol.training.reading import PACED, Part, distinct, drops, parts

from ..engines.seam import Data, Session, Start

Timed = Callable[[Callable[[], object]], int]
# Before a deep reading, so that caches, threads and clocks are as in the timing.
WARM_NS = 100_000_000
# A reading whose pace is doubtful is made again this often at most; not a longer one, because the
# parent process takes a worker that is silent for minutes for stuck.
MOST_AGAIN, LONGEST_AGAIN_NS = 2, 10_000_000_000


@dataclass(frozen=True)
class Calls:
    """The calls of readings, each of ``steps`` steps as a timed block.

    ``timed``: runs a function and returns its nanoseconds. ``blocks``: of the timing; None where
    nothing was timed, and a reading is made once whatever its pace.
    """

    steps: int
    timed: Timed
    blocks: Blocks | None = None

    @property
    def warm_up(self) -> int:
        """The steps of ``WARM_NS`` in the timing, at most a block's."""
        if self.blocks is None:
            return 0
        return min(self.steps, int(WARM_NS * self.steps / median(self.blocks.durations_ns)))


def evaluated_start(session: Session, workload: Workload, cell: Cell, data: Data) -> float | None:
    """The loss of the first batch where layers drop; elsewhere None: the first step tells it."""
    if not drops(workload):
        return None
    rows = data.order[: cell.batch_size]
    return finite(session.evaluate(data.train_x[rows], data.train_y[rows])[0])


def start_loss(session: Session, evaluated: float | None) -> float | None:
    """The loss of a session that has trained one step, if none was ``evaluated``. It shows the
    weights and the order of samples with which the timing begins; a restart sets both."""
    return finite(session.loss()) if evaluated is None else evaluated


def read(
    session: Session,
    workload: Workload,
    cell: Cell,
    seed: str,
    start_loss: float | None,
    calls: Calls,
) -> Witness:
    """The witness of a session whose last block has ended.

    Args:
        seed: of the starting weights. They are generated again: no copy is kept during the timing.
        start_loss: of :func:`start_loss`.
    """
    weights = seeded.initial_weights(workload, seed)
    steps, moved = session.step_count(), movements(session, workload, weights)
    done = parts(workload, cell.batch_size, seed)
    starts = [_start(workload, cell, weights, part, seed) for part in done]
    readings: list[Reading] = []
    for number, (part, start) in enumerate(zip(done, starts, strict=True)):
        make = partial(_reading, session, workload, part, start, calls)
        paced = calls.blocks if number == compared(done) else None
        readings.append(_fastest(make, cell, part, paced) if paced else make())
    return Witness(
        step_count=steps,
        counted_by=session.counted_by,
        movements=moved,
        start_loss=start_loss,
        readings=tuple(readings),
    )


def _start(workload: Workload, cell: Cell, weights: seeded.Weights, part: Part, seed: str) -> Start:
    samples, batch = workload.data_set.train_samples, cell.batch_size
    few = distinct(workload, batch)
    orders = tuple(
        seeded.reading_order(samples, epoch, seed, batch, few) for epoch in range(part.epochs)
    )
    return Start(weights, orders, part.first, part.kind == "masks", part.kind == "first")


def _fastest(make: Callable[[], Reading], cell: Cell, part: Part, blocks: Blocks) -> Reading:
    """A reading, or the fastest of up to three: a busy machine slows one as if its session did less
    in the blocks. Each is whole, so its loss and movements are those of its own steps."""
    best = make()
    for _ in range(MOST_AGAIN):
        pace = pace_of(cell, blocks, part, best.durations_ns)
        is_long = sum(best.durations_ns) > LONGEST_AGAIN_NS
        if pace is None or pace.ratio <= DOUBTFUL_PACE or is_long:
            break
        again = make()
        faster = pace_of(cell, blocks, part, again.durations_ns)
        best = again if faster and faster.ratio < pace.ratio else best
    return best


def _reading(
    session: Session, workload: Workload, part: Part, start: Start, calls: Calls
) -> Reading:
    """Train the steps of each call, timed as a block is."""

    def train(steps: int) -> None:
        session.train_block(steps)
        session.sync()

    session.restart(start)
    if part.kind in PACED:
        train(1)  # compiles what the restart has changed
        if calls.warm_up:
            train(calls.warm_up)
        session.restart(start)
    session.sync()
    times_ns = (calls.timed(partial(train, steps)) for steps in part.calls(calls.steps))
    durations_ns = tuple(max(1, ns) for ns in times_ns)
    return Reading(
        loss=finite(session.loss()),
        movements=movements(session, workload, start.weights),
        durations_ns=durations_ns,
    )


def untimed(action: Callable[[], object]) -> int:
    """Run a function; its time does not matter."""
    action()
    return 1


def counts_all_steps(measurement: Measurement) -> bool:
    """Whether the session's step count equals the requested steps, but for updates that a dynamic
    loss scale leaves out because gradients overflow."""
    recorded, blocks = measurement.witness, measurement.blocks
    if recorded is None:
        return True
    missing = 1 + blocks.warm_up_steps + blocks.steps - recorded.step_count
    is_dynamic = measurement.recipe_settings.get("loss_scale") == "dynamic"
    return missing >= 0 if is_dynamic else missing == 0


def movements(session: Session, workload: Workload, start: seeded.Weights) -> Movements:
    """|w - w_0| of each trained tensor, in the catalogue's order."""
    norms = []
    for tensor, now in zip(trained_tensors(workload), session.trained_parameters(), strict=True):
        moved = now.astype(np.float64) - start[tensor.index][tensor.name]
        norms.append(finite(float(np.linalg.norm(moved))))
    return tuple(norms)


def finite(value: float) -> float | None:
    """The value, or None where it is no finite number."""
    return value if math.isfinite(value) else None
