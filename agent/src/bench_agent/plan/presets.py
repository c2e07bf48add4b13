"""Presets: how much of the matrix to run, and how long each cell may take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bench_protocol.catalogue.catalogue import REPRESENTATIVE
from bench_protocol.catalogue.matrix import DataKind, DeviceKind, Precision, Recipe
from bench_protocol.payload.figures import LONG_SECONDS

from ..base.errors import UsageProblem
from ..base.messages import Timing
from ..base.names import unknown
from ..base.precisions import ALL_PRECISIONS

ALL_RECIPES: tuple[Recipe, ...] = ("naive", "pipeline", "tuned")
ALL_DATA: tuple[DataKind, ...] = ("generated", "real")
# The first eight workloads, measured before the others were added.
CLASSIC = (
    *("mnist-cnn", "fashion-cnn", "cifar100-vgg16", "fashion-mlp", "fashion-convnet"),
    *("fashion-lstm", "mnist-dense", "resnet50-transfer"),
)
# Where a step takes so long that the estimate from other workloads is far too short: workload,
# framework, device.
SLOW_STEPS = {
    ("gpt-char", "mlx", "cpu"): "MLX trains attention on a CPU five times as slowly as PyTorch"
}
# A processor's or a GPU's boost clock must not be all that is timed. On a CPU a little more than
# a long timing needs, so that the energy of ten seconds is in it.
LEAST_SECONDS: Mapping[DeviceKind, float] = {**LONG_SECONDS, "cpu": 12.0}
# On a GPU a block of small steps takes milliseconds. The energy of less than ten seconds is not
# reported, and sensors are read once a second.
LEAST_ON_GPUS: Mapping[DeviceKind, float] = {"metal": 12.0, "cuda": 12.0}


@dataclass(frozen=True)
class Published:
    """A published benchmark: its workloads, recipes and batch sizes.

    ``corrections``: how our training differs from theirs, and why figures may differ.
    """

    points: tuple[tuple[str, Recipe, int], ...]
    frameworks: tuple[str, ...]
    corrections: tuple[str, ...]

    def __str__(self) -> str:
        sizes_by_pair: dict[tuple[str, Recipe], list[int]] = {}
        for workload, recipe, batch_size in self.points:
            sizes_by_pair.setdefault((workload, recipe), []).append(batch_size)
        return "; ".join(
            f"{workload} {recipe} at batch {', '.join(map(str, batch_sizes))}"
            for (workload, recipe), batch_sizes in sizes_by_pair.items()
        )


@dataclass(frozen=True)
class Preset:
    """The settings of a preset like ``quick``.

    ``workloads`` None means the whole catalogue. ``total_seconds``, if set, is divided among the
    cells: each gets its share for timing, between ``shortest`` and ``longest``. ``accuracy_pass``
    adds one repeat over each workload's number of epochs per framework and device; with
    ``published`` every repeat has that many. ``least_seconds``: the shortest timed part of a
    repeat, by kind of device; a kind that is not listed has none. A repeat over a published number
    of epochs, and an accuracy pass, are as long as their epochs. ``longest_repeat_seconds``: cells
    with longer repeats are left out, except of workloads that a filter names.
    """

    name: str
    timing: Timing
    repeats: int
    workloads: tuple[str, ...] | None = None
    recipes: tuple[Recipe, ...] = ("naive", "tuned")
    precisions: tuple[Precision, ...] = ("float32",)
    batches: Literal["default", "all"] = "default"
    total_seconds: float | None = None
    shortest_seconds: float = 3.0
    longest_seconds: float = 30.0
    longest_repeat_seconds: float | None = None
    accuracy_pass: bool = False
    published: Published | None = None
    least_seconds: Mapping[DeviceKind, float] = field(default_factory=dict)


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="smoke",
            workloads=("mnist-cnn", "fashion-mlp"),
            timing=Timing(budget_seconds=3),
            repeats=1,
            least_seconds=LEAST_ON_GPUS,
        ),
        Preset(
            name="quick",
            workloads=REPRESENTATIVE,
            timing=Timing(budget_seconds=10),
            repeats=1,
            total_seconds=600,
            longest_repeat_seconds=240,
            least_seconds=LEAST_ON_GPUS,
        ),
        Preset(
            name="classic",
            workloads=CLASSIC,
            timing=Timing(budget_seconds=10),
            repeats=1,
            total_seconds=600,
            least_seconds=LEAST_ON_GPUS,
        ),
        Preset(
            name="standard",
            timing=Timing(epochs=2),
            repeats=3,
            accuracy_pass=True,
            least_seconds=LEAST_SECONDS,
        ),
        Preset(
            name="full",
            recipes=ALL_RECIPES,
            timing=Timing(epochs=2),
            repeats=3,
            precisions=ALL_PRECISIONS,
            batches="all",
            accuracy_pass=True,
            least_seconds=LEAST_SECONDS,
        ),
    )
}


# Presets of ``--like``: the models, epochs, batch sizes and splits of published benchmarks.
LIKE: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            # github.com/MysterionRise/tensorflow-metal-experiments (2026-02-04)
            name="tensorflow-metal-experiments",
            timing=Timing(),
            repeats=1,
            published=Published(
                points=(
                    ("mnist-cnn", "naive", 64),
                    ("mnist-cnn", "pipeline", 256),
                    ("fashion-cnn", "naive", 64),
                    ("fashion-cnn", "pipeline", 256),
                    ("cifar100-vgg16", "naive", 128),
                ),
                frameworks=("tensorflow", "mlx"),
                corrections=(
                    "RMSprop and Adam with Keras' formulas in every framework; its MLX rows used "
                    "SGD(0.01, momentum 0.9)",
                    "2x2 'same' convolutions pad at the bottom and right in every framework; its "
                    "MLX model padded all sides",
                    "its pipeline rows have batch 256 and its naive rows 64: their ratio is one of "
                    "recipe and batch together",
                    "its seconds are those of whole runs with validation; here an epoch is its "
                    "full batches, validation and start-up apart",
                ),
            ),
        ),
        Preset(
            # "Apple M2 Max GPU vs Nvidia V100, P100 and T4"
            name="m2-max-article",
            timing=Timing(),
            repeats=1,
            published=Published(
                points=tuple(
                    (workload, "naive", batch_size)
                    for workload in ("fashion-mlp", "fashion-convnet", "fashion-lstm")
                    for batch_size in (32, 128, 512, 1024)
                ),
                frameworks=("tensorflow",),
                corrections=(
                    "Adam with Keras' formula and the same weights and order in every framework",
                    "its tables are pictures, so only the ratios in its text can be compared, and "
                    "the number of epochs is ours",
                ),
            ),
        ),
    )
}


def preset_of(preset: str | None, like: str | None = None) -> Preset:
    """The preset of this name, ``quick`` by default, or that of a published benchmark.

    Raises:
        UsageProblem: there is none of this name, or both are named.
    """
    if preset and like:
        raise UsageProblem("--preset and --like exclude each other: give one of them")
    what, name, known = ("source", like, LIKE) if like else ("preset", preset or "quick", PRESETS)
    if name not in known:
        raise UsageProblem(unknown(what, name, known))
    return known[name]


def corrections(name: str | None) -> tuple[str, ...]:
    """How a ``--like`` preset's training differs from its source; empty for our own presets."""
    published = LIKE[name].published if name in LIKE else None
    return published.corrections if published else ()
