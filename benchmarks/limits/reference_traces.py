"""Compute the reference traces of conformance: float64, on the CPU, from written-out formulas.

``python -m benchmarks.limits.reference_traces [WORKLOAD...]`` writes ``reference_traces.json``.

A loss in float32 agrees with one in float64 only while no ReLU and no maximum is decided by
rounding: a unit that is on in one and off in the other changes a gradient by parts in a thousand.
So each trace uses the first seed whose losses do not change when every starting weight moves by a
few roundings, or else the steadiest of a few seeds. The reference records the change. Only the
float64 computation decides this, no framework.

It shares no layer, loss or optimiser with an engine: convolutions, pooling and derivatives are
PyTorch's in float64, everything else is written here from the definitions in ``bench_protocol``.
Float32 enters in three places, as the definition requires: the starting
weights, the pictures (uint8 / 255), and Adam's bias correction, whose ``1 - beta**t`` every
framework takes from beta as float32 (1.3e-5 off the decimal 0.999).
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
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
# Starting weights are changed by this share, about four roundings of float32, this many times.
NUDGE, NUDGES = 5e-7, 3
# A trace is steady if no loss changes by more than this share. SEEDS is the number of seeds tried.
STEADY, SEEDS = 2.5e-6, 4


def main(names: Sequence[str]) -> int:
    """Compute the traces of the named workloads, or of all; the file has one per line."""
    path = Path(conformance.__file__).with_name("reference_traces.json")
    references = dict(conformance.references())
    for workload in [workload_named(name) for name in names] or CATALOGUE:
        for optimizer in conformance.TRACED:
            made = references[workload.digest, optimizer] = reference(workload, optimizer)
            sys.stdout.write(f"{workload.name} {optimizer}: rounding {max(made.rounding):.1e}\n")
            sys.stdout.flush()
    digests = [workload.digest for workload in CATALOGUE]
    lines = [
        made.model_dump_json() for made in references.values() if made.workload_digest in digests
    ]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
    return 0


def reference(workload: Workload, optimizer: conformance.TracedOptimizer) -> conformance.Reference:
    """The reference losses of one trace, from the first steady seed or the steadiest one."""
    traced = conformance.trace_workload(workload, optimizer)
    batch_size = conformance.trace_batch_size(workload)
    tried: list[conformance.Reference] = []
    while len(tried) < SEEDS and not (tried and max(tried[-1].rounding) <= STEADY):
        seed = f"{len(tried):032x}"
        right = losses(traced, batch_size, seed)
        moved = [
            conformance.deviations(losses(traced, batch_size, seed, nudge), right)
            for nudge in range(1, NUDGES + 1)
        ]
        tried.append(
            conformance.Reference(
                workload=workload.name,
                workload_digest=workload.digest,
                optimizer=optimizer,
                batch_size=batch_size,
                seed=seed,
                losses=tuple(float(f"{loss:.10g}") for loss in right),
                rounding=tuple(float(f"{max(step):.1e}") for step in zip(*moved, strict=True)),
            )
        )
    return min(tried, key=lambda candidate: max(candidate.rounding))


def losses(workload: Workload, batch_size: int, seed: str, nudge: int = 0) -> list[float]:
    """Losses of each step of the first epoch, see :func:`trained`."""
    return trained(workload, batch_size, seed, nudge)[0]


def trained(
    workload: Workload, batch_size: int, seed: str, nudge: int = 0, steps: int | None = None
) -> tuple[list[float], list[float]]:
    """Losses of each step, and |w - w_0| of each trained tensor after the last one.

    Args:
        nudge: 0 for unchanged weights, else the number of their random change by ``NUDGE``.
        steps: by default those of the first epoch. Each epoch has the order of the seed.
    """
    import torch

    pictures, labels = seeded.generated_data(workload.data_set, "train")
    # The last short batch of an epoch is dropped.
    per_epoch = len(labels) // batch_size
    steps = steps or per_epoch
    orders = [
        seeded.order(len(labels), epoch, seed)[: per_epoch * batch_size]
        for epoch in range(-(-steps // per_epoch))
    ]
    batches = np.concatenate(orders).reshape(-1, batch_size)[:steps]
    weights: list[Values] = [
        {
            name: torch.tensor(
                _nudged(value, nudge),
                dtype=torch.float64,
                requires_grad=_trained(workload, n, name),
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


def _nudged(value: NDArray[np.float32], nudge: int) -> NDArray[np.float64]:
    wide = value.astype(np.float64)
    if nudge:
        wide *= 1 + NUDGE * np.random.default_rng(nudge).standard_normal(wide.shape)
    return wide


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
