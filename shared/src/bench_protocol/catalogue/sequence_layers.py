"""Layers of sequences as data."""

from typing import Annotated, Literal

from pydantic import Field

from ..base.units import Wire
from .layer import Shape, Size, Weightless


class LSTM(Wire):
    """Long short-term memory, last step's output only.

    Gates in the order i, f, g, o along the last axis, one bias, forget bias starts at 1, tanh and
    sigmoid as in Hochreiter & Schmidhuber 1997 with forget gates (Gers et al. 2000).
    """

    kind: Literal["lstm"] = "lstm"
    units: Size

    def output_shape(self, shape: Shape) -> Shape:
        return (self.units,)

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        gates = 4 * self.units
        return {
            "kernel": (shape[1], gates),
            "recurrent_kernel": (self.units, gates),
            "bias": (gates,),
        }

    def product_flops(self, shape: Shape) -> int:
        steps, features = shape
        return 2 * steps * 4 * self.units * (features + self.units)

    def input_product_flops(self, shape: Shape) -> int:
        steps, features = shape
        return 2 * steps * 4 * self.units * features


class Embedding(Weightless):
    """``tokens[x] + positions``: a learned vector for each token and one for each position."""

    kind: Literal["embedding"] = "embedding"
    vocabulary: Size
    units: Size

    def output_shape(self, shape: Shape) -> Shape:
        return (*shape, self.units)

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {"tokens": (self.vocabulary, self.units), "positions": (shape[0], self.units)}


class LayerNorm(Weightless):
    """``gamma (x - mean) / sqrt(variance + epsilon)`` over the features of each position, with the
    biased variance and without a bias (Ba et al. 2016)."""

    kind: Literal["layer_norm"] = "layer_norm"
    epsilon: Annotated[float, Field(gt=0, lt=1)] = 1e-5

    def output_shape(self, shape: Shape) -> Shape:
        return shape

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {"gamma": shape[-1:]}


class CausalAttention(Wire):
    """Multi-head self-attention over the positions so far (Vaswani et al. 2017, section 3.2).

    ``q, k, v = split(x @ kernel)``; each is cut into ``heads`` heads of adjacent features. A head
    gives ``softmax(q k^T / sqrt(features of a head)) v``, where a position sees itself and those
    before it. The heads side by side are multiplied by ``output_kernel``. There are no biases: that
    of a key has no gradient. FLOPs count all positions, also those that are not seen.
    """

    kind: Literal["causal_attention"] = "causal_attention"
    heads: Size

    def output_shape(self, shape: Shape) -> Shape:
        return shape

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        units = shape[-1]
        return {"kernel": (units, 3 * units), "output_kernel": (units, units)}

    def product_flops(self, shape: Shape) -> int:
        steps, units = shape
        return 2 * steps * units * (4 * units + 2 * steps)

    def input_product_flops(self, shape: Shape) -> int:
        """FLOPs of the gradient of the layer's input: of its first product."""
        steps, units = shape
        return 2 * steps * units * 3 * units
