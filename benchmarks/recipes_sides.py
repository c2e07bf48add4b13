"""For ``make benchmark-recipes``: the sides of a round, each in a fresh process, and the file that
keeps their figures."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Client
from pathlib import Path
from statistics import median

from fidelity_one_process import WORKLOAD
from fidelity_sides import Loop, bare, run
from repeats import BARE_LOOPS, CPU, cell_of, measured

from bench_agent.base.messages import Timing
from bench_agent.engines import engine_named
from bench_agent.engines.seam import HasForms
from bench_protocol.catalogue.matrix import Device, Precision, Recipe
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measurement

BARE_RECIPES: tuple[Recipe, ...] = ("naive", "tuned")
# The forms of bare_loops/layers_*.py; below, those that need a GPU.
LAYERS = {"torch": ("eager",), "jax": ("step", "fori", "scan")}
CUDA_LAYERS = {"torch": ("graph", "compiled", "compiled-graph")}


@dataclass(frozen=True)
class Speed:
    """What one process reached; ``seconds`` a sample, one value a block."""

    seconds: Sequence[float]
    flops_per_second: float = 0.0
    gemm_fraction: float | None = None

    @property
    def samples_per_second(self) -> float:
        return 1 / median(self.seconds)


Side = Callable[[str], Speed]
"""One side of a round, given where its turns are to be had."""


@dataclass(frozen=True)
class Asked:
    """What all rows share. ``file``: gets a line of JSON for each side."""

    device: Device
    precision: Precision
    clock: str
    rounds: int
    file: Path | None

    def is_of_fidelity(self, workload: Workload) -> bool:
        """Whether the loops of the fidelity benchmark train the same."""
        return (workload, self.device, self.precision) == (WORKLOAD, CPU, "float32")


def speed(
    asked: Asked,
    framework: str,
    workload: Workload,
    recipe: Recipe,
    timing: Timing,
    form: str,
    turns: str,
) -> Speed:
    """The speed of one fresh worker."""
    cell = cell_of(framework, workload, recipe, "generated", asked.device, asked.precision)
    measurement = measured(cell, workload, timing, asked.clock, turns=turns, form=form)
    samples = measurement.blocks.steps_per_block * cell.batch_size
    seconds = [duration_ns / 1e9 / samples for duration_ns in measurement.blocks.durations_ns]
    flops = workload.training_flops_per_sample / median(seconds)
    peak = _gemm_flops_per_second(measurement)
    return Speed(seconds, flops, flops / peak if peak else None)


def written(
    asked: Asked, framework: str, workload: Workload, timing: Timing, form: str, turns: str
) -> Speed:
    """The speed of a hand-written loop that follows the list of layers."""
    command = [sys.executable, str(BARE_LOOPS / f"layers_{framework}.py"), form]
    command += ["--workload", workload.name, "--device", asked.device.kind, "--turns", turns]
    command += ["--precision", asked.precision, "--clock", asked.clock]
    found = run([*command, "--seconds", str(timing.budget_seconds)])["epoch_seconds"]
    return Speed([seconds / _epoch_samples(workload) for seconds in found])


def _epoch_samples(workload: Workload) -> int:
    return workload.steps_per_epoch(workload.batch_size) * workload.batch_size


def of_fidelity(framework: str, recipe: Recipe, timing: Timing, clock: str, turns: str) -> Speed:
    """The speed of a loop of the fidelity benchmark."""
    found = bare(Loop(framework, recipe, timing.budget_seconds, clock), turns)
    return Speed([seconds / _epoch_samples(WORKLOAD) for seconds in found])


def or_none(name: str, side: Side, turns: str) -> Speed | None:
    """A side's speed; if it fails, None and a printed line, and the others go on."""
    try:
        return side(turns)
    except SystemExit as problem:
        with suppress(OSError):
            Client(turns).close()  # takes its turn if it never connected
        print(f"{name}: {_last_line(str(problem))}", file=sys.stderr, flush=True)
        return None


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["failed"])[-1][:300]


def _gemm_flops_per_second(measurement: Measurement) -> float | None:
    gemm = measurement.gemm
    return 2 * gemm.size**3 * 1e9 / gemm.duration_ns if gemm else None


def tuned_forms(asked: Asked, framework: str, workload: Workload, *, all_forms: bool) -> list[str]:
    """The forms of ``tuned`` to time; an empty name is the plain one."""
    engine = engine_named(framework)
    cell = cell_of(framework, workload, "tuned", "generated", asked.device, asked.precision)
    found = engine.forms(cell) if all_forms and isinstance(engine, HasForms) else ()
    return list(found) or [""]


def bare_sides(
    asked: Asked, framework: str, workload: Workload, timing: Timing
) -> Iterator[tuple[str, Side]]:
    """Names and sides of the hand-written loops."""
    if asked.is_of_fidelity(workload):
        for recipe in BARE_RECIPES:
            yield recipe, partial(of_fidelity, framework, recipe, timing, asked.clock)
    on_cuda = CUDA_LAYERS.get(framework, ()) if asked.device.kind == "cuda" else ()
    for form in (*LAYERS.get(framework, ()), *on_cuda):
        yield form, partial(written, asked, framework, workload, timing, form)


def rate(speeds: Sequence[Speed]) -> float:
    """Samples a second: the median of the rounds."""
    return median(one.samples_per_second for one in speeds)


def record(
    asked: Asked, framework: str, workload: Workload, side: str, speeds: Sequence[Speed]
) -> None:
    """Add a side to the file."""
    if asked.file is None:
        return
    batch = workload.batch_size
    row = {
        "workload": workload.name,
        "framework": framework,
        "device": asked.device.kind,
        "precision": asked.precision,
        "side": side,
        "samples_per_second": rate(speeds),
        "step_us": batch / rate(speeds) * 1e6,
        "rounds": [[seconds * batch * 1e6 for seconds in one.seconds] for one in speeds],
    }
    with asked.file.open("a") as file:
        file.write(json.dumps(row) + "\n")
