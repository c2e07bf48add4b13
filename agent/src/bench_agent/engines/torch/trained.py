"""The weights of a built PyTorch model that training changes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bench_protocol.catalogue import layers
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import TrainedTensor, trained_tensors

from .model import BatchNormalisation, build


def trained_values(model: Any) -> Iterator[Any]:
    """The trained weights of a built model, in the catalogue's order: parameters, and the running
    statistics of each normalisation after its own."""
    for module in model.modules():
        trained = [own for own in module.parameters(recurse=False) if own.requires_grad]
        yield from trained
        if trained and isinstance(module, BatchNormalisation):
            yield from (module.running_mean, module.running_var)


def trained_parameters(workload: Workload, model: Any) -> Iterator[NDArray[np.float32]]:
    """The trained weights of a built model, in the catalogue's order and layouts."""
    normalisations = (part for part in model.modules() if isinstance(part, BatchNormalisation))
    factors = {id(part.running_var): part.factor for part in normalisations}
    for tensor, values in zip(trained_tensors(workload), trained_values(model), strict=True):
        array = values.detach().float().cpu().numpy() / factors.get(id(values), 1)
        yield np.ascontiguousarray(_in_catalogue_layout(workload, tensor, array))


def _in_catalogue_layout(
    workload: Workload, tensor: TrainedTensor, array: NDArray[np.float32]
) -> NDArray[np.float32]:
    if not tensor.own_name.endswith("kernel"):
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


def set_trained(workload: Workload, model: Any, weights: Weights, batch_size: int) -> None:
    """Give a built model other weights, in place; frozen layers keep theirs."""
    fresh = build(workload, weights, batch_size)
    with torch.no_grad():
        for values, start in zip(trained_values(model), trained_values(fresh), strict=True):
            values.copy_(start)


def switch_dropout(workload: Workload, model: Any, drops: bool) -> None:
    """Give a model's dropout layers their rates, or the rate 0, which passes on the values."""
    for layer, module in zip(
        (layer for layer in workload.layers if isinstance(layer, layers.Dropout)),
        (module for module in model if isinstance(module, nn.Dropout)),
        strict=True,
    ):
        module.p = layer.rate if drops else 0.0
