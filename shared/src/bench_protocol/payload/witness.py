"""The witness: evidence of training from the timed session.

A conformance trace trains a second session. The witness is read from the session that is timed:
losses in its warm-up, its steps and the movement of its weights after the last block, and its
losses again once it is rewound (docs/methodology.md).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..base.units import Count, DurationNs, Finite, PositiveCount, Share, Wire
from ..catalogue.layers import Layer, PlainLayer, Residual, Shape
from ..catalogue.matrix import Precision
from ..catalogue.workloads import Workload

# ResNet50 has 214 trained tensors where all of it is trained.
MOST_TENSORS = 2_000
MOST_READINGS = 16
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Movements = Annotated[tuple[NonNegative | None, ...], Field(max_length=MOST_TENSORS)]
"""|w_end - w_0| of each of :func:`trained_tensors`; None where it is not finite."""
# Statistics of a normalisation are weights that no training changes.
NOT_TRAINED = ("mean", "variance")


class Mask(Wire):
    """What one dropout layer did with a batch of training samples after the timing.

    ``zeros``: the share of the layer's non-zero inputs that it dropped. ``differ``: whether the
    next step's mask differs.
    """

    zeros: Share
    differ: bool


class Rewound(Wire):
    """The second reading of the timed session, after the timing: the same session with its compiled
    programs, back at its starting weights, an empty optimiser state and its first step.

    ``start_loss``: mean loss of the first batch with the starting weights, dropout off.
    ``losses``: as in :class:`Witness`, after the same steps. ``movements``: after the last of them.
    """

    start_loss: Finite | None
    losses: tuple[Finite | None, ...] = Field(max_length=MOST_READINGS)
    movements: Movements = ()


class Witness(Wire):
    """Evidence of training, read from the timed session.

    ``losses``: mean loss of the last batch after each of ``steps``; all steps between two readings
    are trained in one call. ``step_count``: steps trained when the last block had ended, by the
    optimiser's own counter where the framework has one, else by the loop's. ``movements`` and
    ``masks``, one for each dropout layer: read after the last block. The measurement's
    ``last_loss`` is read then too. ``rewound``: read last of all.
    """

    steps: tuple[PositiveCount, ...] = Field(max_length=MOST_READINGS)
    losses: tuple[Finite | None, ...] = Field(max_length=MOST_READINGS)
    step_count: Count
    counted_by: Literal["optimizer", "loop"]
    movements: Movements = ()
    masks: tuple[Mask, ...] = Field(default=(), max_length=100)
    rewound: Rewound | None = None

    @model_validator(mode="after")
    def _a_loss_a_reading(self) -> "Witness":
        if len(self.losses) != len(self.steps):
            raise ValueError(f"losses has {len(self.losses)} values, steps has {len(self.steps)}")
        if self.rewound and len(self.rewound.losses) != len(self.steps):
            counts = f"{len(self.rewound.losses)} values, steps has {len(self.steps)}"
            raise ValueError(f"rewound.losses has {counts}")
        if list(self.steps) != sorted(set(self.steps)):
            raise ValueError("steps must rise")
        return self


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

    @property
    def own_name(self) -> str:
        """The name without a residual block's prefix: ``kernel``, ``bias``, ``gamma``, ..."""
        return self.name.rpartition(".")[2]


def may_skip_updates(recipe_settings: Mapping[str, str], precision: Precision) -> bool:
    """Whether an honest session may update its weights in fewer steps than it trains: Keras'
    dynamic loss scale, in float16, leaves out updates whose gradients overflow."""
    return precision == "mixed_float16" and recipe_settings.get("loss_scale") == "dynamic"


def trained_tensors(workload: Workload) -> Iterator[TrainedTensor]:
    """The weights that training changes, in the catalogue's order.

    Layers in their order, in a residual block ``main`` before ``shortcut``; the weights of a layer
    in the order of its ``weight_shapes``. Frozen layers and the statistics of normalisations are
    left out.
    """
    layers = list(zip(workload.layers, workload.shapes[:-1], strict=True))
    for index, (layer, inputs) in list(enumerate(layers))[workload.frozen_layers :]:
        for prefix, part, part_inputs in _parts(layer, inputs):
            for name, shape in part.weight_shapes(part_inputs).items():
                if name not in NOT_TRAINED:
                    yield TrainedTensor(index, prefix + name, part, shape)


def _parts(layer: Layer, inputs: Shape) -> list[tuple[str, PlainLayer, Shape]]:
    if isinstance(layer, Residual):
        return [(part.prefix, part.layer, part.inputs) for part in layer.parts(inputs)]
    return [("", layer, inputs)]
