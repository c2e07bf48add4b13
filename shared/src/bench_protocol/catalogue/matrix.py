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
    "`tuned` on CUDA was not measured by us: it may be slower than an expert's loop "
    "(docs/methodology.md, Recipes)"
)


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


def caveat(recipe: str, kind: str) -> str | None:
    """What a reader must know of a recipe on a kind of device, or None."""
    return TUNED_ON_CUDA if (recipe, kind) == ("tuned", "cuda") else None


def why_not(workload: Workload, batch_size: int) -> str | None:
    """The reason why a batch size cannot be measured on a workload, or None."""
    samples = workload.data_set.train_samples
    if batch_size > samples:
        return f"batch {batch_size:,} is larger than the {samples:,} samples of the data"
    return None
