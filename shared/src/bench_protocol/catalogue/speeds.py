"""Speeds in what a workload counts: tokens, else samples. Results have samples per second."""

from typing import Literal

from ..base import format as people
from .catalogue import CATALOGUE

DATA_SETS = {workload.name: workload.data_set for workload in CATALOGUE}


def unit(workload: str) -> Literal["sample", "token"]:
    """The unit that a speed counts; samples where this program does not know the workload."""
    return DATA_SETS[workload].unit if workload in DATA_SETS else "sample"


def of_tokens(workload: str, samples_per_second: float | None) -> float | None:
    """Tokens per second; None for a workload of samples, or without a speed."""
    if samples_per_second is None or unit(workload) == "sample":
        return None
    return samples_per_second * DATA_SETS[workload].units_per_sample


def per_second(samples_per_second: float, workload: str) -> float:
    """Samples or tokens per second."""
    return of_tokens(workload, samples_per_second) or samples_per_second


def number(samples_per_second: float, workload: str) -> str:
    """``12,300``: samples or tokens per second."""
    return people.rate(per_second(samples_per_second, workload))


def interval(low: float, high: float, workload: str) -> str:
    """``12,300 to 12,400``: samples or tokens per second."""
    return people.interval(per_second(low, workload), per_second(high, workload), people.rate)


def words(samples_per_second: float, workload: str) -> str:
    """``12,300 samples/s``, ``41,200 tokens/s``."""
    return f"{number(samples_per_second, workload)} {unit(workload)}s/s"


def among_samples(samples_per_second: float, workload: str) -> str:
    """A number in a column of samples per second; one of tokens says so: ``41,200 tokens/s``."""
    of_tokens = unit(workload) == "token"
    return f"{number(samples_per_second, workload)}{' tokens/s' * of_tokens}"


def short(samples_per_second: float, workload: str) -> str:
    """``12,300/s``, ``41,200 tokens/s``: what most speeds count is not said."""
    among = among_samples(samples_per_second, workload)
    return among if unit(workload) == "token" else f"{among}/s"
