"""Cells: the points of the benchmark matrix, and which of them can be measured."""

from functools import cached_property
from typing import Literal, get_args

from ..base import strict_json
from ..base.units import DeviceIndex, PositiveCount, Sha256, Slug, Wire
from .workloads import Workload

DeviceKind = Literal["metal", "cuda", "cpu"]
Recipe = Literal["naive", "pipeline", "tuned"]
Precision = Literal["float32", "tf32", "mixed_float16", "mixed_bfloat16"]
# All tables list recipes in this order: the plain loop first.
RECIPES: tuple[Recipe, ...] = get_args(Recipe)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
DataKind = Literal["real", "generated"]
# Number formats of the matrix products of each precision.
PRODUCTS: dict[Precision, str] = {
    "float32": "float32",
    "tf32": "tf32",
    "mixed_float16": "float16",
    "mixed_bfloat16": "bfloat16",
}


TUNED_ON_CUDA = (
    "Nobody has compared the recipe tuned on CUDA with an expert's loop, which may be faster "
    "(docs/methodology.md, Recipes)"
)
# On one NVIDIA H200, beside the fastest hand-written loop: fashion-mlp 0.75, mnist-cnn 0.91,
# fashion-lstm 0.64 in float32; cifar100-vgg16 1.05 in TF32, 1.07 in mixed_bfloat16.
MEASURED_ON_CUDA = {
    "jax": "The recipe tuned with JAX on CUDA was 0.64 to 1.07 times as fast as hand-written loops "
    "on an H200"
}


class Device(Wire):
    """A device to train on: its kind, and its index within the kind."""

    kind: DeviceKind
    index: DeviceIndex = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}" if self.index else self.kind


class Cell(Wire):
    """One point of the matrix. Cell and repeat identify a result within a run."""

    workload: Slug
    workload_digest: Sha256
    framework: Slug
    device: Device
    recipe: Recipe
    batch_size: PositiveCount
    precision: Precision
    data: DataKind

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, lower-case hex."""
        return strict_json.digest(self.model_dump(mode="json"))

    def __str__(self) -> str:
        return (
            f"{self.workload} {self.framework} {self.device} {self.recipe} "
            f"batch {self.batch_size} {self.precision} {self.data}"
        )


def caveat(framework: str, recipe: str, kind: str) -> str | None:
    """What a reader must know of a framework's recipe on a kind of device, or None."""
    if (recipe, kind) != ("tuned", "cuda"):
        return None
    return MEASURED_ON_CUDA.get(framework, TUNED_ON_CUDA)


def why_not(workload: Workload, batch_size: int) -> str | None:
    """The reason why a batch size cannot be measured on a workload, or None."""
    samples = workload.data_set.train_samples
    if batch_size > samples:
        return f"batch {batch_size:,} is larger than the {samples:,} samples of the data"
    return None
