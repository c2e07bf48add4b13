"""Presets: how much of the matrix to run, and how long each cell may take."""

from dataclasses import dataclass
from typing import Literal

from bench_protocol.matrix import DataKind, Precision, Recipe

from .job import Timing
from .problems import UsageProblem

ALL_RECIPES: tuple[Recipe, ...] = ("naive", "pipeline", "tuned")
ALL_DATA: tuple[DataKind, ...] = ("generated", "real")
ALL_PRECISIONS: tuple[Precision, ...] = ("float32", "tf32", "mixed_float16", "mixed_bfloat16")


@dataclass(frozen=True)
class Preset:
    """What a name like ``quick`` stands for.

    ``workloads`` None means the whole catalogue. ``total_seconds``, where set, is shared out
    among the cells: each gets its share for timing, within ``shortest`` and ``longest``.
    """

    name: str
    summary: str
    timing: Timing
    repeats: int
    workloads: tuple[str, ...] | None = None
    recipes: tuple[Recipe, ...] = ALL_RECIPES
    precisions: tuple[Precision, ...] = ("float32",)
    batches: Literal["default", "all"] = "default"
    total_seconds: float | None = None
    shortest_seconds: float = 2.0
    longest_seconds: float = 30.0


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="smoke",
            summary="two small workloads, about a minute on two cores",
            workloads=("mnist-cnn", "fashion-mlp"),
            recipes=("naive", "tuned"),
            timing=Timing(budget_seconds=2.5),
            repeats=1,
        ),
        Preset(
            name="quick",
            summary="every workload at its default batch, about ten minutes",
            timing=Timing(budget_seconds=10),
            repeats=1,
            total_seconds=600,
        ),
        Preset(
            name="standard",
            summary="three repeats of two timed epochs each",
            timing=Timing(epochs=2),
            repeats=3,
        ),
        Preset(
            name="full",
            summary="every legal cell: all batch sizes and precisions, three repeats",
            timing=Timing(epochs=2),
            repeats=3,
            precisions=ALL_PRECISIONS,
            batches="all",
        ),
    )
}


def preset_named(name: str) -> Preset:
    """Find a preset.

    Raises:
        UsageProblem: there is none of this name.
    """
    if name not in PRESETS:
        raise UsageProblem(f"unknown preset {name!r}; choose one of: {', '.join(PRESETS)}")
    return PRESETS[name]
