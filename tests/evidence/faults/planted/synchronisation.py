"""Faults of synchronisation: a block's time without all of its work."""

from typing import Any

from ..fault import Fault, Planting, Setup
from .steps import MLX_PIPELINE

JAX_CNN = Setup("mnist-cnn", "jax")


def no_sync(here: Planting) -> None:
    def change(session: Any) -> None:
        session.sync = lambda: None

    here.sessions(change)


def clock_before_sync(here: Planting) -> None:
    """The stopwatch reads the clock, then waits for the device."""
    from bench_agent.worker import stopwatch

    def now(self: Any) -> int:
        read: int = self._clock()
        self._session.sync()
        return read

    stopwatch._Stopwatch.now = now  # type: ignore[method-assign]


FAULTS = tuple(
    Fault(name, words, where, setup, plant, in_timed_loop=True)
    for name, words, where, setup, plant in (
        ("B17", "no synchronisation", "engines/mlx/sessions.py sync", MLX_PIPELINE, no_sync),
        ("N17", "the clock is read before the device is idle", "worker/stopwatch.py now",
         MLX_PIPELINE, clock_before_sync),
        ("N18", "no synchronisation", "engines/jax/sessions.py sync", JAX_CNN, no_sync),
    )
)  # fmt: skip
