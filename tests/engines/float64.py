"""A trace in float64 on the CPU, from written-out formulas, to compare the recomputation with.

It shares no layer, loss or optimiser with an engine or with ``bench_protocol.recompute``:
convolutions, pooling and derivatives are PyTorch's in float64, everything else is written here from
the definitions in ``bench_protocol``. Float32 enters in three places, as the definition requires:
the starting weights, the pictures (uint8 / 255), and Adam's bias correction, whose ``1 - beta**t``
every framework takes from beta as float32 (1.3e-5 off the decimal 0.999).
"""

from typing import Any

import numpy as np

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.layers import (
    LSTM,
    BatchNorm,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    GlobalAveragePool2D,
    Layer,
    MaxPool2D,
    Residual,
    ZeroPad2D,
)
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload
from bench_protocol.training import conformance

Values = dict[str, Any]


def trained(
    workload: Workload, batch_size: int, seed: str, steps: int
) -> tuple[list[float], list[float]]:
    """Losses of each step of a trace, and |w - w_0| of each trained tensor after the last one.

    Args:
        workload: in its traced form. Each epoch has an order of the seed.
    """
    import torch

    pictures, labels = seeded.generated_data(workload.data_set, "train", seed=seed)
    # The last short batch of an epoch is dropped.
    per_epoch = len(labels) // batch_size
    orders = [
        seeded.order(len(labels), epoch, seed)[: per_epoch * batch_size]
        for epoch in range(-(-steps // per_epoch))
    ]
    batches = np.concatenate(orders).reshape(-1, batch_size)[:steps]
    weights: list[Values] = [
        {
            name: torch.tensor(
                value, dtype=torch.float64, requires_grad=_trained(workload, n, name)
            )
            for name, value in values.items()
        }
        for n, values in enumerate(conformance.trace_weights(workload, seed))
    ]
    trainable = [value for values in weights for value in values.values() if value.requires_grad]
    states = [[torch.zeros_like(value), torch.zeros_like(value)] for value in trainable]
    start = [value.detach().clone() for value in trainable]
    step_losses = []
    for step, rows in enumerate(batches):
        floats = (pictures[rows].astype(np.float32) / np.float32(255)).astype(np.float64)
        x = torch.from_numpy(floats)
        for layer, values in zip(workload.layers, weights, strict=True):
            x = _forward(layer, values, x)
        right = x[torch.arange(batch_size), torch.from_numpy(labels[rows]).long()]
        loss = (torch.logsumexp(x, dim=1) - right).mean()
        gradients = torch.autograd.grad(loss, trainable)
        with torch.no_grad():
            for value, gradient, state in zip(trainable, gradients, states, strict=True):
                value += _change(workload.optimizer, gradient, state, step + 1)
        step_losses.append(float(loss.detach()))
    moved = [
        float(torch.linalg.norm(value.detach() - before))
        for value, before in zip(trainable, start, strict=True)
    ]
    return step_losses, moved


def _trained(workload: Workload, layer: int, name: str) -> bool:
    statistics = name.rsplit(".")[-1] in ("mean", "variance")
    return layer >= workload.frozen_layers and not statistics


def _forward(layer: Layer, values: Values, x: Any) -> Any:
    """One layer, channels-last."""
    import torch

    match layer:
        case Conv2D():
            x = _convolution(layer, values["kernel"], x) + values["bias"]
        case Dense():
            x = x @ values["kernel"] + values["bias"]
        case BatchNorm():
            deviation = torch.sqrt(values["variance"] + layer.epsilon)
            x = values["gamma"] * (x - values["mean"]) / deviation + values["beta"]
        case MaxPool2D():
            pool = torch.nn.functional.max_pool2d
            return pool(x.permute(0, 3, 1, 2), layer.size, layer.stride).permute(0, 2, 3, 1)
        case ZeroPad2D():
            return torch.nn.functional.pad(x, (0, 0, *(layer.size,) * 4))
        case GlobalAveragePool2D():
            return x.mean(dim=(1, 2))
        case Flatten():
            return x.reshape(len(x), -1)
        case Dropout():
            raise ValueError("traces have no dropout")
        case LSTM():
            return _lstm(values, x)
        case Residual():
            branches = [x, x]
            for number, name in enumerate(("main", "shortcut")):
                for index, part in enumerate(getattr(layer, name)):
                    prefix = f"{name}.{index}."
                    branch_values = {
                        key.removeprefix(prefix): value
                        for key, value in values.items()
                        if key.startswith(prefix)
                    }
                    branches[number] = _forward(part, branch_values, branches[number])
            return torch.relu(branches[0] + branches[1])
    return torch.relu(x) if layer.activation == "relu" else x


def _convolution(layer: Conv2D, kernel: Any, x: Any) -> Any:
    import torch

    if layer.padding == "same":
        sides: list[int] = []
        for size in x.shape[2:0:-1]:  # torch.pad begins with the last dimension: width, height
            outputs = -(-size // layer.stride)
            missing = max(0, (outputs - 1) * layer.stride + layer.kernel - size)
            sides += [missing // 2, missing - missing // 2]
        x = torch.nn.functional.pad(x, (0, 0, *sides))
    product = torch.nn.functional.conv2d(
        x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), stride=layer.stride
    )
    return product.permute(0, 2, 3, 1)


def _lstm(values: Values, x: Any) -> Any:
    import torch

    units = values["recurrent_kernel"].shape[0]
    hidden = cell = torch.zeros(len(x), units, dtype=torch.float64)
    for step in range(x.shape[1]):
        gates = x[:, step] @ values["kernel"] + hidden @ values["recurrent_kernel"]
        i, f, g, o = (gates + values["bias"]).split(units, dim=1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        hidden = torch.sigmoid(o) * torch.tanh(cell)
    return hidden


def _change(settings: Optimizer, gradient: Any, state: list[Any], step: int) -> Any:
    """The optimiser's change of a weight; formulas in ``bench_protocol.catalogue.workloads``."""
    match settings:
        case SGD():
            state[0] = settings.momentum * state[0] - settings.learning_rate * gradient
            return state[0]
        case RMSprop():
            state[0] = settings.rho * state[0] + (1 - settings.rho) * gradient**2
            return -settings.learning_rate * gradient / (state[0] + settings.epsilon).sqrt()
        case Adam():
            beta_1, beta_2 = (float(np.float32(b)) for b in (settings.beta_1, settings.beta_2))
            alpha = settings.learning_rate * (1 - beta_2**step) ** 0.5 / (1 - beta_1**step)
            state[0] = settings.beta_1 * state[0] + (1 - settings.beta_1) * gradient
            state[1] = settings.beta_2 * state[1] + (1 - settings.beta_2) * gradient**2
            return -alpha * state[0] / (state[1].sqrt() + settings.epsilon)
