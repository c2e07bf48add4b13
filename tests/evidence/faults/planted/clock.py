"""Faults of the worker's clock and of its list of blocks."""

import time
from collections.abc import Callable
from typing import Any

from bench_agent.worker import main, repeat, stopwatch
from bench_protocol.payload.result import Blocks, Measured

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
    steps are counted.

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
        repeat.measure = measure

    return plant


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


def stopwatch_block(change: Callable[[int], int]) -> Plant:
    """A block's time is another where it is taken: the message and the list agree."""

    def plant(here: Planting) -> None:
        right = stopwatch._Stopwatch.block

        def block(self: Any, steps: int) -> int:
            return max(1, change(right(self, steps)))

        stopwatch._Stopwatch.block = block  # type: ignore[method-assign]

    return plant


LIES = (
    "a worker rewritten to lie consistently, at 4 products of its own or less; other owners and a "
    "second run tell"
)
SLIPS = ("D1", "D2", "D5", "N36")
FAULTS = tuple(
    Fault(
        name, words, where, setup, plant, slip=name in SLIPS, unseen=LIES if name == "N34" else ""
    )
    for name, words, where, setup, plant in (
        ("D1", "the worker's clock at half speed", "worker/main.py clock", TORCH, half_speed),
        ("D2", "steps_per_block stated twice as large", "worker/repeat.py", TF,
         blocks(lambda made: {"steps_per_block": 2 * made.steps_per_block})),
        ("D3", "all blocks are the fastest block", "worker/repeat.py", MLX,
         durations(lambda made: [min(made)] * len(made))),
        ("D4", "canned blocks (a tenth)", "worker/stopwatch.py", JAX,
         canned(waits=False)),
        ("D5", "only the fastest half of the blocks sent", "worker/repeat.py", TORCH,
         durations(fastest_half)),
        ("D6", "block times halved when sent", "worker/main.py", JAX, halved_when_sent),
        ("N34", "canned blocks (a tenth) that take their time", "worker/stopwatch.py", JAX,
         canned(waits=True)),
        ("N36", "warm-up steps are not stated", "worker/repeat.py", TORCH,
         blocks(lambda made: {"warm_up_steps": made.warm_up_steps // 2})),
    )
)  # fmt: skip
