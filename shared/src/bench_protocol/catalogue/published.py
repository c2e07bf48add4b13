"""Figures that others published: copied with their source, unsigned, not measured by this project.

The server imports them as rows of trust level 0; a report of the agent draws one beside a
machine's own figures.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .catalogue import workload_named

FILE = Path(__file__).resolve().parent / "published.json"


@dataclass(frozen=True)
class Published:
    """One published figure, in float32 on real data. ``samples_per_second`` is over all samples of
    its epochs, the last short batch included, which the source timed too."""

    hardware: str
    workload: str
    framework: str
    device: str
    recipe: str
    batch_size: int
    samples_per_second: float


@cache
def document() -> dict[str, Any]:
    """The file: its source (name, url, licence, date, note), and the figures as copied."""
    read: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return read


def figures() -> Iterator[Published]:
    for copied in document()["figures"]:
        names = ("hardware", "workload", "framework", "device", "recipe", "batch_size")
        yield Published(
            **{name: copied[name] for name in names}, samples_per_second=1e9 / ns_per_sample(copied)
        )


def ns_per_sample(copied: dict[str, Any]) -> float:
    """Nanoseconds a sample of a figure of the file."""
    samples = copied["epochs"] * workload_named(copied["workload"]).data_set.train_samples
    return float(copied["seconds"] * 1e9 / samples)
