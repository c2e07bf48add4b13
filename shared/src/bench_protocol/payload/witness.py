"""The witness: evidence of training from the timed session.

The session that is timed shows how many steps it counted and how far its weights moved. Then it
trains parts of its job again, which the server recomputes (docs/methodology.md).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from ..base.units import Count, DurationNs, Finite, PositiveCount, Wire
from ..catalogue.layers import BatchNorm, Layer, PlainLayer, Residual, Shape
from ..catalogue.matrix import Precision
from ..catalogue.workloads import Workload

# ResNet50 has 214 trained tensors where all of it is trained.
MOST_TENSORS = 2_000
# The calls of a reading: one for each step where a block has one step.
MOST_CALLS = 512
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Movements = Annotated[tuple[NonNegative | None, ...], Field(max_length=MOST_TENSORS)]
"""|w_end - w_0| of each of :func:`trained_tensors`; None where it is not finite."""
# Statistics of a normalisation are weights that no gradient changes.
STATISTICS = ("mean", "variance")


class Reading(Wire):
    """A part of the job (:func:`bench_protocol.training.reading.parts`) that the timed session
    trained again after the timing.

    ``loss``: mean loss of its last batch. ``movements``: after its last step, since its start.
    ``durations_ns``: of its calls; each has the steps of a block, the last one the remaining steps.
    """

    loss: Finite | None
    movements: Movements
    durations_ns: tuple[DurationNs, ...] = Field(min_length=1, max_length=MOST_CALLS)


class Witness(Wire):
    """Evidence of training, read from the timed session: the start loss at its first step, all
    else after its last block.

    ``step_count``: steps trained when the last block had ended, by the optimiser's own counter
    where the framework has one, else by the loop's. ``movements``: of the weights at that time.
    ``start_loss``: mean loss of the first step, dropout off. ``readings``: in the order of the
    parts.
    """

    step_count: Count
    counted_by: Literal["optimizer", "loop"]
    movements: Movements = ()
    start_loss: Finite | None
    readings: tuple[Reading, ...] = Field(max_length=8)


class LastBlock(Wire):
    """Steps that do not fill a whole block at the end of the last epoch, and their time."""

    steps: PositiveCount
    duration_ns: DurationNs


@dataclass(frozen=True)
class TrainedTensor:
    """A weight that training changes. ``name`` is its key in ``seeded.initial_weights``;
    ``layer`` the plain layer that holds it, inside a residual block too."""

    index: int
    name: str
    layer: PlainLayer
    shape: Shape

    def __str__(self) -> str:
        return f"{self.index}/{self.name}"

    @property
    def own_name(self) -> str:
        """The name without a residual block's prefix: ``kernel``, ``bias``, ``gamma``, ..."""
        return self.name.rpartition(".")[2]

    @property
    def has_gradient(self) -> bool:
        """Whether the optimiser changes it; running statistics are changed by the batches."""
        return self.own_name not in STATISTICS


def may_skip_updates(recipe_settings: Mapping[str, str], precision: Precision) -> bool:
    """Whether an honest session may update its weights in fewer steps than it trains: Keras'
    dynamic loss scale, in float16, leaves out updates whose gradients overflow."""
    return precision == "mixed_float16" and recipe_settings.get("loss_scale") == "dynamic"


def trained_tensors(workload: Workload) -> Iterator[TrainedTensor]:
    """The weights that training changes, in the catalogue's order.

    Layers in their order, in a residual block ``main`` before ``shortcut``; the weights of a layer
    in the order of its ``weight_shapes``. Frozen layers and stored statistics of normalisations
    are left out; running statistics are there, because training changes them too.
    """
    layers = list(zip(workload.layers, workload.shapes[:-1], strict=True))
    for index, (layer, inputs) in list(enumerate(layers))[workload.frozen_layers :]:
        for prefix, part, part_inputs in _parts(layer, inputs):
            for name, shape in part.weight_shapes(part_inputs).items():
                stored = isinstance(part, BatchNorm) and part.statistics == "stored"
                if not (stored and name in STATISTICS):
                    yield TrainedTensor(index, prefix + name, part, shape)


def _parts(layer: Layer, inputs: Shape) -> list[tuple[str, PlainLayer, Shape]]:
    if isinstance(layer, Residual):
        return [(part.prefix, part.layer, part.inputs) for part in layer.parts(inputs)]
    return [("", layer, inputs)]
