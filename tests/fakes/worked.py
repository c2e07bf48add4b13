"""Repeats of a worker in this process."""

from typing import Any

from bench_agent.base.messages import Answer
from bench_agent.worker import main as worker

from .engine import FakeEngine
from .workloads import TINY, job_of


def answer(engine: FakeEngine, **timing: Any) -> tuple[Answer, list[Any]]:
    """The answer to a job of the tiny workload, and the worker's messages."""
    messages: list[Any] = []
    return worker.work(job_of(TINY, **timing), messages.append, engine.clock), messages
