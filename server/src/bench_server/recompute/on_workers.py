"""Recompute on the workers of a scheduler. The queue, the draw, the keys and the log stay here: a
worker gets a workload and a seed, with the training samples where they are real, and returns
figures.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from threading import Event
from typing import Any, TypeVar

from bench_protocol.catalogue.nonces import Purpose
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.training.recomputed import Figures
from bench_protocol.training.speed_run import OpenedState

from ..cluster import Workers
from . import speed_runs
from .worker import Recomputer, compute

Outcome = TypeVar("Outcome")


def recompute(recomputer: Recomputer, workers: Workers, once: bool) -> int:
    """Work with as many jobs at a time as the workers have threads now: until no job is free, or
    for ever.

    Returns:
        The number of jobs, 0 unless ``once``.

    Raises:
        SchedulerProblem: the workers cannot be used. Their jobs are free again.
    """
    remote = _Remote(workers)
    there = replace(
        recomputer,
        compute=remote.compute,
        distances=remote.distances,
        processor_seconds=remote.processor_seconds,
    )
    stop = Event()

    def follow() -> int:
        if once:
            return there.drain()
        there.run(stop)
        return 0

    with ThreadPoolExecutor(workers.threads) as threads:
        try:
            followers = [threads.submit(follow) for _ in range(workers.threads)]
            return sum(follower.result() for follower in as_completed(followers))
        finally:
            stop.set()
            workers.close()


def timed(function: Callable[..., Outcome], *arguments: Any) -> tuple[Outcome, float]:
    """A function's outcome and the processor seconds of this process meanwhile, on a worker."""
    began = time.process_time()
    outcome = function(*arguments)
    return outcome, time.process_time() - began


class _Remote:
    """What the recomputer calls, computed by workers; each thread has a clock of its own."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._of_thread = threading.local()

    def compute(
        self, workload: Workload, purpose: Purpose, nonce: str, batch_size: int, *real: Any
    ) -> Figures:
        return self._call(compute, workload, purpose, nonce, batch_size, *real)

    def distances(self, seed: str, opened: Mapping[int, OpenedState]) -> dict[int, float]:
        return self._call(speed_runs.distances, seed, opened)

    def processor_seconds(self) -> float:
        return float(getattr(self._of_thread, "seconds", 0.0))

    def _call(self, function: Callable[..., Outcome], *arguments: Any) -> Outcome:
        measured: tuple[Outcome, float] = self._workers.call(timed, function, *arguments)
        outcome, seconds = measured
        self._of_thread.seconds = self.processor_seconds() + seconds
        return outcome
