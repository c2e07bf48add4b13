"""Train any workload in PyTorch from its list of layers, without the agent's engines:
``python benchmarks/bare_loops/layers_torch.py graph --workload mnist-cnn --device cuda``."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from _shared import finish, layers_arguments, time_blocks
from torch import nn
from torch.nn import functional as F  # noqa: N812

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.workloads import Workload

FORMS = ("eager", "graph", "compiled", "compiled-graph")
STEPS = 16  # in one CUDA graph
HALF = {"mixed_bfloat16": torch.bfloat16, "mixed_float16": torch.float16}
SCALE = 1024.0


class Embedding(nn.Module):
    """This and the attention are those of nanoGPT's ``model.py``."""

    def __init__(self, layer: Any, shape: Sequence[int]) -> None:
        super().__init__()
        self.wte = nn.Embedding(layer.vocabulary, layer.units)
        self.wpe = nn.Embedding(shape[0], layer.units)

    def forward(self, x: Any) -> Any:
        return self.wte(x) + self.wpe(torch.arange(x.size(1), device=x.device))


class CausalSelfAttention(nn.Module):
    def __init__(self, layer: Any, shape: Sequence[int]) -> None:
        super().__init__()
        self.n_head, self.n_embd = layer.heads, shape[1]
        self.c_attn = nn.Linear(self.n_embd, 3 * self.n_embd, bias=False)
        self.c_proj = nn.Linear(self.n_embd, self.n_embd, bias=False)

    def forward(self, x: Any) -> Any:
        b, t, c = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        q, k, v = (part.view(b, t, self.n_head, -1).transpose(1, 2) for part in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))


class Frozen(nn.Module):
    """Batch normalisation with fixed statistics."""

    def __init__(self, channels: int, layer: Any) -> None:
        super().__init__()
        self.layer = layer
        for name, value in (("mean", 0), ("variance", 1), ("gamma", layer.gamma), ("beta", 0)):
            self.register_buffer(name, torch.full((channels,), float(value)))

    def forward(self, x: Any) -> Any:
        fixed = self.mean, self.variance, self.gamma, self.beta
        x = F.batch_norm(x, *fixed, training=False, momentum=0.0, eps=self.layer.epsilon)
        return x.relu() if self.layer.activation == "relu" else x


class Last(nn.Module):
    """An LSTM's last output."""

    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, units, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.lstm(x)[0][:, -1]


class Residual(nn.Module):
    def __init__(self, layer: Any, shape: Sequence[int]) -> None:
        super().__init__()
        self.main, self.shortcut = chain(layer.main, shape), chain(layer.shortcut, shape)
        self.last = ACTIVATIONS[layer.activation]()

    def forward(self, x: Any) -> Any:
        return self.last(self.main(x) + self.shortcut(x))


def conv(layer: Any, shape: Any) -> nn.Module:
    (top, bottom), (before, after) = layer.padding_zeros(shape)
    is_equal = top == bottom and before == after
    padding = (top, before) if is_equal else 0
    sizes = (layer.kernel, layer.stride, padding)
    made = nn.Conv2d(shape[2], layer.filters, *sizes, bias=layer.bias)
    return made if is_equal else nn.Sequential(nn.ZeroPad2d((before, after, top, bottom)), made)


def batch_norm(layer: Any, shape: Any) -> nn.Module:
    if layer.statistics == "stored":
        return Frozen(shape[-1], layer)
    made = nn.BatchNorm2d(shape[-1], layer.epsilon)
    made.num_batches_tracked = None
    nn.init.constant_(made.weight, layer.gamma)
    return nn.Sequential(made, ACTIVATIONS[layer.activation]())


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "linear": nn.Identity,
    "relu": nn.ReLU,
    "gelu": lambda: nn.GELU(approximate="tanh"),
}
MODULES: dict[str, Callable[[Any, Any], nn.Module]] = {
    "conv2d": conv,
    "max_pool2d": lambda layer, shape: nn.MaxPool2d(layer.size, layer.stride),
    "zero_pad2d": lambda layer, shape: nn.ZeroPad2d(layer.size),
    "global_average_pool2d": lambda layer, shape: nn.Sequential(
        nn.AdaptiveAvgPool2d(1), nn.Flatten()
    ),
    "batch_norm": batch_norm,
    "flatten": lambda layer, shape: nn.Flatten(),
    "dropout": lambda layer, shape: nn.Dropout(layer.rate),
    "dense": lambda layer, shape: nn.Linear(shape[-1], layer.units, bias=layer.bias),
    "lstm": lambda layer, shape: Last(shape[1], layer.units),
    "embedding": Embedding,
    "layer_norm": lambda layer, shape: nn.LayerNorm(shape[-1], layer.epsilon, bias=False),
    "causal_attention": CausalSelfAttention,
    "residual": Residual,
}


def chain(layers: Sequence[Any], shape: Any) -> nn.Sequential:
    """The modules of some layers, channels first."""
    made: list[nn.Module] = []
    for layer in layers:
        made.append(MODULES[layer.kind](layer, shape))
        if layer.kind in ("conv2d", "dense") and layer.activation != "linear":
            made.append(ACTIVATIONS[layer.activation]())
        shape = layer.output_shape(shape)
    return nn.Sequential(*made)


def optimizer_of(workload: Workload, weights: list[Any], *, captured: bool) -> Any:
    """PyTorch's own optimizer, with epsilon where PyTorch adds it."""
    wanted = workload.optimizer
    fixed: dict[str, Any] = {"capturable": True} if captured else {}
    if wanted.kind == "adam":
        betas = (wanted.beta_1, wanted.beta_2)
        rates = wanted.learning_rate, betas, wanted.epsilon
        if wanted.weight_decay:
            groups = [
                {"params": [w for w in weights if w.dim() >= 2]},
                {"params": [w for w in weights if w.dim() < 2], "weight_decay": 0.0},
            ]
            decay = wanted.weight_decay
            return torch.optim.AdamW(groups, *rates, weight_decay=decay, fused=True, **fixed)
        return torch.optim.Adam(weights, *rates, fused=True, **fixed)
    if wanted.kind == "rmsprop":
        rates = wanted.learning_rate, wanted.rho, wanted.epsilon
        return torch.optim.RMSprop(weights, *rates, foreach=weights[0].is_cuda, **fixed)
    rates = wanted.learning_rate, wanted.momentum
    return torch.optim.SGD(weights, *rates, weight_decay=wanted.weight_decay, fused=True)


class Loop:
    """Data, model and training step of a workload, on the device before timing starts."""

    def __init__(self, workload: Workload, device: str, precision: str, form: str) -> None:
        self.device, self.batch = torch.device(device), workload.batch_size
        self.half = HALF.get(precision)
        self.scale = SCALE if precision == "mixed_float16" else 1.0
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = (
            precision == "tf32"
        )
        torch.backends.cudnn.benchmark = True
        cut, shapes = workload.frozen_layers, workload.shapes
        self.frozen = chain(workload.layers[:cut], shapes[0]).to(self.device).requires_grad_(False)
        self.trained = chain(workload.layers[cut:], shapes[cut]).to(self.device)
        x, y = seeded.generated_data(workload.data_set, "train")
        inputs = torch.from_numpy(x if x.ndim < 4 else np.ascontiguousarray(np.moveaxis(x, -1, 1)))
        if workload.data_set.tokens:
            inputs = inputs.long()
        elif inputs.numel() * 4 < 2**30:
            inputs = inputs.float() / 255
        self.x, self.y = inputs.to(self.device), torch.from_numpy(y).long().to(self.device)
        # Tensor cores take channels last, and oneDNN is faster with it.
        if self.x.dim() == 4 and (device == "cpu" or precision != "float32"):
            self.x = self.x.to(memory_format=torch.channels_last)
            for net in (self.frozen, self.trained):
                net.to(memory_format=torch.channels_last)
        self.weights = list(self.trained.parameters())
        self.optimizer = optimizer_of(workload, self.weights, captured="graph" in form)
        self.loss_of: Any = self._loss
        if "compiled" in form:
            self.loss_of = torch.compile(self._loss, dynamic=False)
        self.steps = len(y) // self.batch
        order = torch.randperm(len(y), device=self.device)
        self.order = order[: self.steps * self.batch].view(self.steps, self.batch)
        self.next = 0

    def parameter_count(self) -> int:
        """As the catalogue counts: without the second bias of ``nn.LSTM``."""
        named = [item for net in (self.frozen, self.trained) for item in net.state_dict().items()]
        return sum(value.numel() for name, value in named if "bias_hh" not in name)

    def _loss(self, x: Any, y: Any) -> Any:
        with torch.autocast(self.device.type, dtype=self.half, enabled=self.half is not None):
            with torch.no_grad():
                x = self.frozen(x)
            logits = self.trained(x)
        return F.cross_entropy(logits.float().flatten(0, -2), y.flatten()) * self.scale

    def step(self, rows: Any) -> None:
        picked = self.x.index_select(0, rows)
        if picked.dtype == torch.uint8:
            picked = picked.float() / 255
        self.optimizer.zero_grad(set_to_none=True)
        self.loss_of(picked, self.y.index_select(0, rows)).backward()
        if self.scale != 1:
            torch._foreach_div_([weight.grad for weight in self.weights], self.scale)
        self.optimizer.step()

    def sync(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def eager(self, count: int) -> None:
        """Train ``count`` steps, requested one by one."""
        for _ in range(count):
            self.step(self.order[self.next % self.steps])
            self.next += 1
        self.sync()

    def captured(self, length: int) -> Callable[[int], None]:
        """Capture ``length`` steps in a CUDA graph; the result trains a multiple of them."""
        rows, stream = self.order[:length].clone(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.step(rows[0])
        torch.cuda.current_stream().wait_stream(stream)
        self.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for number in range(length):
                self.step(rows[number])

        def train(count: int) -> None:
            for _ in range(count // length):
                first = self.next % max(1, self.steps - length)
                rows.copy_(self.order[first : first + length])
                graph.replay()
                self.next += length
            self.sync()

        return train


def timed(options: argparse.Namespace, seconds: float) -> list[float]:
    """Seconds per epoch of each block."""
    workload = workload_named(options.workload)
    loop = Loop(workload, options.device, options.precision, options.recipe)
    if loop.parameter_count() != workload.parameter_count:
        raise ValueError(f"{loop.parameter_count()} weights, not {workload.parameter_count}")
    if "graph" not in options.recipe:
        return time_blocks(loop.eager, seconds, loop.steps)
    length = min(STEPS, loop.steps)
    return time_blocks(loop.captured(length), seconds, loop.steps, length)


if __name__ == "__main__":
    options = layers_arguments(FORMS).parse_args()
    finish(options, partial(timed, options))
