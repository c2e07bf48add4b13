"""Workloads: data set, layers, optimiser as pure data. The digest is the identity."""

import math
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from ..base import strict_json
from ..base.units import Count, PositiveCount, Slug, Wire
from .layers import Layer, Shape

Rate = Annotated[float, Field(ge=0, lt=1)]
Size = Literal["small", "medium", "large"]
# The fewest weights of a model of each size.
SIZES: dict[Size, int] = {"large": 10_000_000, "medium": 250_000, "small": 0}
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
# Left out of the digest where nothing decays.
Decay = Annotated[float, Field(ge=0, lt=1, exclude_if=lambda decay: decay == 0)]


class RMSprop(Wire):
    """Keras' RMSprop: v <- rho v + (1 - rho) g^2; w <- w - lr g / sqrt(v + epsilon)."""

    kind: Literal["rmsprop"] = "rmsprop"
    learning_rate: Positive = 1e-3
    rho: Rate = 0.9
    epsilon: Positive = 1e-7


class Adam(Wire):
    """Keras' Adam (Kingma & Ba 2014, the efficient form before section 2.1).

    alpha = lr sqrt(1 - beta_2^t) / (1 - beta_1^t); w <- w - alpha m / (sqrt(v) + epsilon).
    ``weight_decay``: before the update, w <- w - lr weight_decay w, of tensors with two or more
    dimensions only (Loshchilov & Hutter 2019, AdamW).
    """

    kind: Literal["adam"] = "adam"
    learning_rate: Positive = 1e-3
    beta_1: Rate = 0.9
    beta_2: Rate = 0.999
    epsilon: Positive = 1e-7
    weight_decay: Decay = 0.0


class SGD(Wire):
    """u <- momentum u - lr (g + weight_decay w); w <- w + u."""

    kind: Literal["sgd"] = "sgd"
    learning_rate: Positive = 0.01
    momentum: Rate = 0.9
    weight_decay: Decay = 0.0


Optimizer = Annotated[RMSprop | Adam | SGD, Field(discriminator="kind")]


class DataSet(Wire):
    """Shape of the data. Values are uint8 and reach the first layer as float32 in [0, 1].

    ``tokens``: samples are sequences of tokens, uint16 below ``classes``, which reach the first
    layer as whole numbers; a sample's label is the token after each of its tokens.
    ``generation``: number of the arithmetic behind generated data (docs/protocol.md). It is
    in every workload's digest, so results on data of another arithmetic are never compared.
    ``patterns``: how many patterns generated data shows; more take longer to learn.
    ``noise``: by its definition the data is random pictures with random labels, nothing to learn.
    """

    name: Slug
    sample_shape: tuple[PositiveCount, ...]
    classes: PositiveCount
    train_samples: PositiveCount
    validation_samples: Count = 0
    test_samples: PositiveCount
    generation: Literal[2] = 2
    # The square of 24 random bits times this fits into 64 bits.
    patterns: Annotated[int, Field(ge=1, le=2**16)] = 4_096
    # Left out of the digest where false.
    noise: bool = Field(default=False, exclude_if=lambda noise: not noise)
    tokens: bool = Field(default=False, exclude_if=lambda tokens: not tokens)

    @property
    def unit(self) -> Literal["sample", "token"]:
        """The unit that a speed counts."""
        return "token" if self.tokens else "sample"

    @property
    def units_per_sample(self) -> int:
        """Tokens of a sample; 1 where a sample is the unit."""
        return math.prod(self.sample_shape) if self.tokens else 1


class Workload(Wire):
    """One training: data set shape, layers, loss, optimiser, default batch size, epochs.

    The loss is softmax cross-entropy of the last layer's outputs, averaged over the batch, and over
    the tokens of each sample.
    ``batch_sizes`` and ``summary`` are for plans and people; they are not part of the identity.
    """

    name: Slug
    data_set: DataSet
    layers: tuple[Layer, ...]
    frozen_layers: Count = 0
    loss: Literal["softmax_cross_entropy"] = "softmax_cross_entropy"
    optimizer: Optimizer
    batch_size: PositiveCount
    epochs: PositiveCount
    batch_sizes: tuple[PositiveCount, ...] = Field(default=(), exclude=True)
    summary: str = Field(default="", exclude=True)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the definition's canonical JSON, lower-case hex."""
        return strict_json.digest(self.model_dump(mode="json"))

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """Input shape of every layer, and the output shape at the end."""
        shapes: list[Shape] = [self.data_set.sample_shape]
        for layer in self.layers:
            shapes.append(layer.output_shape(shapes[-1]))
        return tuple(shapes)

    @cached_property
    def parameter_count(self) -> int:
        """Number of weights, frozen ones included."""
        return self._parameters(0)

    @cached_property
    def size(self) -> Size:
        """The model's size class, by its number of weights."""
        return next(size for size, fewest in SIZES.items() if self.parameter_count >= fewest)

    @cached_property
    def trained_parameter_count(self) -> int:
        """Number of weights that training changes."""
        return self._parameters(self.frozen_layers)

    def _parameters(self, first_layer: int) -> int:
        layers = list(zip(self.layers, pairwise(self.shapes), strict=True))
        return sum(
            math.prod(shape)
            for layer, (inputs, _) in layers[first_layer:]
            for shape in layer.weight_shapes(inputs).values()
        )

    @cached_property
    def training_flops_per_sample(self) -> int:
        """FLOPs of one sample's forward and backward pass in convolutions and matrix products.

        Forward F; the gradient of the weights F; the gradient of the input F, which the first
        trained layer does not need. Frozen layers only run forward. An embedding is trained without
        a product.
        """
        total = 0
        first_trained = True
        for index, (layer, inputs) in enumerate(zip(self.layers, self.shapes[:-1], strict=True)):
            forward = layer.product_flops(inputs)
            if index < self.frozen_layers:
                total += forward
            elif forward:
                total += 3 * forward
                if first_trained:
                    total -= layer.input_product_flops(inputs)
            if index >= self.frozen_layers and layer.weight_shapes(inputs):
                first_trained = False
        return total

    def steps_per_epoch(self, batch_size: int) -> int:
        """Full batches in one epoch; the last short batch is dropped."""
        return self.data_set.train_samples // batch_size
