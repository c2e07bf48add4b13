"""A PyTorch model from a workload's layer list.

Layouts differ from those of the seeded weights: pictures are (batch, channels, height, width) here,
convolution kernels (out, in, height, width), dense and LSTM kernels (out, in).
"""

from collections.abc import Iterator
from typing import Any, assert_never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bench_protocol.catalogue import layers
from bench_protocol.catalogue.seeded import Weights, weights_of
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import TrainedTensor, trained_tensors


def as_channels_first(pictures: NDArray[Any]) -> NDArray[Any]:
    """(samples, height, width, channels) as (samples, channels, height, width), contiguous; samples
    of other shapes as they are."""
    if pictures.ndim != 4:
        return pictures
    return np.ascontiguousarray(pictures.transpose(0, 3, 1, 2))


def as_pictures(batch: Any) -> NDArray[np.float32]:
    """A batch of the device, copied to the host: as before :func:`as_channels_first`."""
    samples: NDArray[np.float32] = batch.cpu().numpy()
    return samples if samples.ndim != 4 else samples.transpose(0, 2, 3, 1)


def build(workload: Workload, weights: Weights, *, channels_last: bool = False) -> Any:
    """Build the model: ``torch.nn.Sequential`` from (batch, ...) to logits (batch, classes).
    ``channels_last``: pictures and kernels are stored so; shapes do not change."""
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


def trained_parameters(workload: Workload, model: Any) -> Iterator[NDArray[np.float32]]:
    """The trained weights of a built model, in the catalogue's order and layouts."""
    trained = (parameter for parameter in model.parameters() if parameter.requires_grad)
    for tensor, parameter in zip(trained_tensors(workload), trained, strict=True):
        array = parameter.detach().float().cpu().numpy()
        yield np.ascontiguousarray(_in_catalogue_layout(workload, tensor, array))


def _in_catalogue_layout(
    workload: Workload, tensor: TrainedTensor, array: NDArray[np.float32]
) -> NDArray[np.float32]:
    if tensor.own_name not in ("kernel", "recurrent_kernel"):
        return array
    if isinstance(tensor.layer, layers.Conv2D):
        return array.transpose(2, 3, 1, 0)
    flattened = _flattened_picture(workload, tensor)
    if flattened is None:
        return array.T
    height, width, channels = flattened
    rows = array.T.reshape(channels, height, width, -1).transpose(1, 2, 0, 3)
    return rows.reshape(tensor.shape)


def _flattened_picture(workload: Workload, tensor: TrainedTensor) -> layers.Shape | None:
    """The picture whose flattened values a dense layer gets, as :class:`_Builder` found it."""
    if not isinstance(tensor.layer, layers.Dense):
        return None
    for layer, shape in reversed(
        list(zip(workload.layers, workload.shapes, strict=False))[: tensor.index]
    ):
        if isinstance(layer, layers.Flatten):
            return shape if len(shape) == 3 else None
        if isinstance(layer, layers.Dense):
            return None
    return None


def set_trained(workload: Workload, model: Any, weights: Weights) -> None:
    """Give a built model other weights, in place; frozen layers keep theirs."""
    fresh = build(workload, weights)
    with torch.no_grad():
        for parameter, start in zip(model.parameters(), fresh.parameters(), strict=True):
            if parameter.requires_grad:
                parameter.copy_(start)


def switch_dropout(workload: Workload, model: Any, drops: bool) -> None:
    """Give a model's dropout layers their rates, or the rate 0, which passes on the values."""
    for layer, module in zip(
        (layer for layer in workload.layers if isinstance(layer, layers.Dropout)),
        (module for module in model if isinstance(module, nn.Dropout)),
        strict=True,
    ):
        module.p = layer.rate if drops else 0.0


class FixedNormalisation(nn.BatchNorm2d):  # type: ignore[misc]
    """Batch normalisation in inference mode, also while training."""

    def forward(self, x: Any) -> Any:
        return nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, main: Any, shortcut: Any) -> None:
        super().__init__()
        self.main, self.shortcut = main, shortcut

    def forward(self, x: Any) -> Any:
        return nn.functional.relu(self.main(x) + self.shortcut(x))


class LastOutput(nn.LSTM):  # type: ignore[misc]
    """PyTorch's LSTM, last output only.

    In autocast PyTorch takes oneDNN's LSTM on any CPU, but oneDNN has none in bfloat16 before
    AVX-512: the call ends with "could not create a primitive descriptor".
    """

    def forward(self, x: Any) -> Any:
        half = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
        if not half or _onednn_has_bfloat16():
            outputs, _ = super().forward(x)
        else:
            # None leaves a flag as it is.
            with torch.backends.mkldnn.flags(
                enabled=False, deterministic=None, allow_tf32=None, fp32_precision=None
            ):
                outputs, _ = super().forward(x)
        return outputs[:, -1]


class _Builder:
    """Builds the layers in order and remembers the shape of the last flattened picture."""

    def __init__(self, channels_last: bool) -> None:
        self._channels_last = channels_last
        self._flattened: layers.Shape | None = None

    def parts(self, layer: layers.Layer, shape: layers.Shape, values: Any) -> Any:
        """Modules of one layer; ``shape`` is its input's, channels-last and without the batch."""
        match layer:
            case layers.Conv2D():
                parts = self._convolution(layer, shape, values)
            case layers.MaxPool2D():
                return [nn.MaxPool2d(layer.size, layer.stride)]
            case layers.Flatten():
                self._flattened = shape if len(shape) == 3 else None
                return [nn.Flatten()]
            case layers.Dropout():
                return [nn.Dropout(layer.rate)]
            case layers.Dense():
                parts = [self._dense(shape, values)]
            case layers.LSTM():
                return [_lstm(layer, shape, values)]
            case layers.ZeroPad2D():
                return [nn.ZeroPad2d(layer.size)]
            case layers.GlobalAveragePool2D():
                return [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
            case layers.BatchNorm():
                parts = [_normalisation(layer, values)]
            case layers.Residual():
                return [self._block(layer, shape, values)]
            case layers.Embedding() | layers.LayerNorm() | layers.CausalAttention():
                raise LookupError(f"the engine has no layer {layer.kind}")
            case _:
                assert_never(layer)
        if layer.activation == "relu":
            parts.append(nn.ReLU())
        return parts

    def _convolution(self, layer: layers.Conv2D, shape: layers.Shape, values: Any) -> list[Any]:
        (top, bottom), (left, right) = layer.padding_zeros(shape)
        even = (top, left) == (bottom, right)
        convolution = nn.Conv2d(
            shape[2], layer.filters, layer.kernel, layer.stride, padding=(top, left) if even else 0
        )
        _set(convolution.weight, values["kernel"].transpose(3, 2, 0, 1))
        _set(convolution.bias, values["bias"])
        if self._channels_last:
            convolution.to(memory_format=torch.channels_last)
        if even:
            return [convolution]
        return [nn.ZeroPad2d((left, right, top, bottom)), convolution]

    def _block(self, block: layers.Residual, shape: layers.Shape, values: Any) -> Any:
        def branch(name: layers.Branch) -> Any:
            modules = nn.Sequential()
            for part in block.branch(name, shape):
                modules.extend(self.parts(part.layer, part.inputs, weights_of(part, values)))
            return modules

        return Block(branch("main"), branch("shortcut"))

    def _dense(self, shape: layers.Shape, values: Any) -> Any:
        kernel = values["kernel"]
        if self._flattened is not None:
            # Flatten puts the channels first here, so reorder the kernel's rows instead of each
            # picture.
            rows = kernel.reshape(*self._flattened, -1).transpose(2, 0, 1, 3)
            kernel = rows.reshape(kernel.shape)
            self._flattened = None
        dense = nn.Linear(shape[-1], kernel.shape[1])
        _set(dense.weight, kernel.T)
        _set(dense.bias, values["bias"])
        return dense


def _normalisation(layer: layers.BatchNorm, values: Any) -> Any:
    fixed = FixedNormalisation(len(values["gamma"]), eps=layer.epsilon)
    # Keras and the catalogue do not count num_batches_tracked.
    fixed.num_batches_tracked = None
    for name, into in (("gamma", fixed.weight), ("beta", fixed.bias)):
        _set(into, values[name])
    fixed.running_mean.copy_(torch.from_numpy(values["mean"]))
    fixed.running_var.copy_(torch.from_numpy(values["variance"]))
    return fixed


def _lstm(layer: layers.LSTM, shape: layers.Shape, values: Any) -> Any:
    """PyTorch's second bias is zero and not trained."""
    lstm = LastOutput(shape[1], layer.units, batch_first=True)
    _set(lstm.weight_ih_l0, values["kernel"].T)
    _set(lstm.weight_hh_l0, values["recurrent_kernel"].T)
    _set(lstm.bias_ih_l0, values["bias"])
    del lstm.bias_hh_l0
    lstm.register_buffer("bias_hh_l0", torch.zeros(4 * layer.units), persistent=False)
    # The kernels use this list, so the buffer must replace the parameter in it.
    lstm._flat_weights = [getattr(lstm, name) for name in lstm._flat_weights_names]
    return lstm


def _onednn_has_bfloat16() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _set(parameter: Any, values: NDArray[np.float32]) -> None:
    with torch.no_grad():
        parameter.copy_(torch.from_numpy(np.ascontiguousarray(values)))
