"""A PyTorch model from a workload's layer list.

Layouts differ from the seeds': pictures are (batch, channels, height, width) here, convolution
kernels (out, in, height, width), dense and LSTM kernels (out, in).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_protocol.layers import LSTM, Conv2D, Dense, Dropout, Flatten, Layer, MaxPool2D, Shape
from bench_protocol.seeded import Weights
from bench_protocol.workloads import Workload


def as_channels_first(pictures: NDArray[Any]) -> NDArray[Any]:
    """(samples, height, width, channels) as (samples, channels, height, width), contiguous.

    Samples of other shapes are left as they are.
    """
    if pictures.ndim != 4:
        return pictures
    return np.ascontiguousarray(pictures.transpose(0, 3, 1, 2))


def build(workload: Workload, weights: Weights, *, channels_last: bool = False) -> Any:
    """Build the model: ``torch.nn.Sequential`` from (batch, ...) to logits (batch, classes).

    Args:
        channels_last: lay pictures and kernels out in memory with the channels innermost. The
            shapes stay as they are.
    """
    from torch import nn

    builder = _Builder(channels_last)
    model = nn.Sequential()
    for index, (layer, shape, values) in enumerate(
        zip(workload.layers, workload.shapes[:-1], weights, strict=True)
    ):
        parts = builder.parts(layer, shape, values)
        for part in parts:
            part.requires_grad_(index >= workload.frozen_layers)
        model.extend(parts)
    return model


class _Builder:
    """Goes through the layers; knows which picture was flattened last."""

    def __init__(self, channels_last: bool) -> None:
        self._channels_last = channels_last
        self._flattened: Shape | None = None

    def parts(self, layer: Layer, shape: Shape, values: dict[str, NDArray[np.float32]]) -> Any:
        """Modules of one layer; ``shape`` is its input's, channels-last and without the batch."""
        from torch import nn

        match layer:
            case Conv2D():
                parts = self._convolution(layer, shape, values)
            case MaxPool2D():
                return [nn.MaxPool2d(layer.size, layer.stride)]
            case Flatten():
                self._flattened = shape if len(shape) == 3 else None
                return [nn.Flatten()]
            case Dropout():
                return [nn.Dropout(layer.rate)]
            case Dense():
                parts = [self._dense(shape, values)]
            case LSTM():
                return [_lstm(layer, shape, values)]
            case _:
                raise NotImplementedError(f"PyTorch has no form of the layer {layer.kind!r} yet")
        if layer.activation == "relu":
            parts.append(nn.ReLU())
        return parts

    def _convolution(self, layer: Conv2D, shape: Shape, values: Any) -> list[Any]:
        import torch
        from torch import nn

        before, after = _padding(layer, shape)
        even = before == after
        convolution = nn.Conv2d(
            shape[2], layer.filters, layer.kernel, layer.stride, padding=before if even else 0
        )
        _set(convolution.weight, values["kernel"].transpose(3, 2, 0, 1))
        _set(convolution.bias, values["bias"])
        if self._channels_last:
            convolution.to(memory_format=torch.channels_last)
        if even:
            return [convolution]
        (top, left), (bottom, right) = before, after
        return [nn.ZeroPad2d((left, right, top, bottom)), convolution]

    def _dense(self, shape: Shape, values: Any) -> Any:
        from torch import nn

        kernel = values["kernel"]
        if self._flattened is not None:
            # Flattening here puts the channels first: reorder the rows instead of each picture.
            rows = kernel.reshape(*self._flattened, -1).transpose(2, 0, 1, 3)
            kernel = rows.reshape(kernel.shape)
            self._flattened = None
        dense = nn.Linear(shape[-1], kernel.shape[1])
        _set(dense.weight, kernel.T)
        _set(dense.bias, values["bias"])
        return dense


def _padding(layer: Conv2D, shape: Shape) -> tuple[tuple[int, int], tuple[int, int]]:
    """Zeros (top, left) and (bottom, right) so that ``same`` keeps the size; the odd ones last."""
    if layer.padding == "valid":
        return (0, 0), (0, 0)
    missing = [
        max(0, (math.ceil(size / layer.stride) - 1) * layer.stride + layer.kernel - size)
        for size in shape[:2]
    ]
    top, left = (zeros // 2 for zeros in missing)
    return (top, left), (missing[0] - top, missing[1] - left)


def _lstm(layer: LSTM, shape: Shape, values: Any) -> Any:
    """PyTorch's LSTM, last output only, with the second bias as zeros that are not trained."""
    import torch
    from torch import nn

    class LastOutput(nn.LSTM):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            outputs, _ = super().forward(x)
            return outputs[:, -1]

    lstm = LastOutput(shape[1], layer.units, batch_first=True)
    _set(lstm.weight_ih_l0, values["kernel"].T)
    _set(lstm.weight_hh_l0, values["recurrent_kernel"].T)
    _set(lstm.bias_ih_l0, values["bias"])
    del lstm.bias_hh_l0
    lstm.register_buffer("bias_hh_l0", torch.zeros(4 * layer.units), persistent=False)
    # The list the kernels get: the buffer has to take the parameter's place in it.
    lstm._flat_weights = [getattr(lstm, name) for name in lstm._flat_weights_names]
    return lstm


def _set(parameter: Any, values: NDArray[np.float32]) -> None:
    import torch

    with torch.no_grad():
        parameter.copy_(torch.from_numpy(np.ascontiguousarray(values)))
