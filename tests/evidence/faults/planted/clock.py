"""Faults of the worker's clock and of its list of blocks."""

import time
from collections.abc import Callable
from typing import Any

from bench_agent.worker import conformance_trace, main, repeat, stopwatch
from bench_protocol.payload.result import Blocks, Measured, Trace

from ..fault import Fault, Plant, Planting
from .optimiser import JAX, MLX, TF, TORCH


def half_speed(here: Planting) -> None:
    right = time.perf_counter_ns
    time.perf_counter_ns = lambda: right() // 2


def blocks(change: Callable[[Blocks], dict[str, Any]]) -> Plant:
    """The measurement gets other blocks than were reported one by one."""

    def plant(here: Planting) -> None:
        right = repeat.measure

        def measure(*arguments: Any, **named: Any) -> Blocks:
            made = right(*arguments, **named)
            return made.model_copy(update=change(made))

        repeat.measure = measure

    return plant


def durations(change: Callable[[list[int]], list[int]]) -> Plant:
    return blocks(lambda made: {"durations_ns": tuple(change(list(made.durations_ns)))})


def fastest_half(made: list[int]) -> list[int]:
    return sorted(made)[: max(2, len(made) // 2)]


def canned(*, waits: bool) -> Plant:
    """JAX: after the warm-up nothing is trained; a step takes a tenth of what it took before, all
    steps are counted, and the traces are the reference's.

    Args:
        waits: time passes as it is reported.
    """

    def plant(here: Planting) -> None:
        timing, step_ns = [False], [0.0]
        right, measured = stopwatch._Stopwatch.block, repeat.measure

        def block(self: Any, steps: int) -> int:
            if not timing[0]:
                duration_ns = right(self, steps)
                step_ns[0] = duration_ns / steps
                return duration_ns
            said_ns = max(1, int(step_ns[0] * steps / 10))
            if waits:
                time.sleep(said_ns / 1e9)
            self._session._trained += steps
            return said_ns

        def measure(*arguments: Any, on_timing: Callable[[], None], **named: Any) -> Blocks:
            def begins() -> None:
                timing[0] = True
                on_timing()

            return measured(*arguments, on_timing=begins, **named)

        stopwatch._Stopwatch.block = block  # type: ignore[method-assign]
        repeat.measure, conformance_trace.both = measure, other_nonces_traces

    return plant


def other_nonces_traces(engine: Any, workload: Any, cell: Any, nonce: Any) -> tuple[Trace, ...]:
    """Traces that anybody can compute: of a nonce that is not the challenge's."""
    references = conformance_trace.recomputed(workload, "0" * 64)
    return tuple(
        Trace(
            optimizer=optimizer,
            batch_size=right.batch_size,
            seed=right.seed,
            losses=right.figures.losses,
            movements=right.figures.movements,
        )
        for optimizer, right in references.items()
    )


def halved_when_sent(here: Planting) -> None:
    """The worker's answer has half of each block's time."""
    right = main.work

    def work(*arguments: Any) -> Any:
        answer = right(*arguments)
        measurement = answer.outcome.measurement
        if measurement is None:
            return answer
        halved = tuple(duration // 2 for duration in measurement.blocks.durations_ns)
        blocks = measurement.blocks.model_copy(update={"durations_ns": halved})
        outcome = Measured(measurement=measurement.model_copy(update={"blocks": blocks}))
        return answer.model_copy(update={"outcome": outcome})

    main.work = work


def block_halved(here: Planting) -> None:
    """A block's time is halved where it is taken: the message and the list agree."""
    right = stopwatch._Stopwatch.block

    def block(self: Any, steps: int) -> int:
        return max(1, right(self, steps) // 2)

    stopwatch._Stopwatch.block = block  # type: ignore[method-assign]


def block_shaved(here: Planting) -> None:
    """A block's time is 4 % shorter where it is taken."""
    right = stopwatch._Stopwatch.block

    def block(self: Any, steps: int) -> int:
        return max(1, right(self, steps) * 96 // 100)

    stopwatch._Stopwatch.block = block  # type: ignore[method-assign]


def work_between_blocks(here: Planting) -> None:
    """An eighth of a block's steps is trained before its first reading of the clock."""

    def block(self: Any, steps: int) -> int:
        outside = steps // 8
        self._session.train_block(outside)
        began_ns = self.now()
        self._session.train_block(steps - outside)
        return max(1, self.now() - began_ns)

    stopwatch._Stopwatch.block = block  # type: ignore[method-assign]


LIES = (
    "a worker rewritten to lie consistently, at 4 products of its own or less; other owners and a "
    "second run tell"
)
FAULTS = tuple(
    Fault(name, words, where, setup, plant, unseen=LIES if name == "N34" else "")
    for name, words, where, setup, plant in (
        ("D1", "the worker's clock at half speed", "worker/main.py clock", TORCH, half_speed),
        ("D2", "steps_per_block stated twice as large", "worker/repeat.py", TF,
         blocks(lambda made: {"steps_per_block": 2 * made.steps_per_block})),
        ("D3", "all blocks are the fastest block", "worker/repeat.py", MLX,
         durations(lambda made: [min(made)] * len(made))),
        ("D4", "canned blocks (a tenth) and traces of another nonce", "worker/stopwatch.py", JAX,
         canned(waits=False)),
        ("D5", "only the fastest half of the blocks sent", "worker/repeat.py", TORCH,
         durations(fastest_half)),
        ("D6", "block times halved when sent", "worker/main.py", JAX, halved_when_sent),
        ("N33", "each block's time halved where it is taken", "worker/stopwatch.py", MLX,
         block_halved),
        ("N34", "canned blocks (a tenth) that take their time", "worker/stopwatch.py", JAX,
         canned(waits=True)),
        ("N35", "slowest block left out", "worker/repeat.py", TF,
         durations(lambda made: sorted(made)[:-1])),
        ("N36", "warm-up steps are not stated", "worker/repeat.py", TORCH,
         blocks(lambda made: {"warm_up_steps": made.warm_up_steps // 2})),
        ("N49", "each block's time 4 % shorter where it is taken", "worker/stopwatch.py", TORCH,
         block_shaved),
        ("N50", "an eighth of a block is trained between two blocks", "worker/stopwatch.py", JAX,
         work_between_blocks),
    )
)  # fmt: skip
