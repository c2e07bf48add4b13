"""``fashion-mlp`` in PyTorch, written bare: ``python benchmarks/bare_loops/torch_loops.py
naive|tuned``."""

import itertools
import math

import torch
from _shared import (
    BATCH,
    BETA_2,
    EPSILON,
    RATE,
    STEPS_PER_EPOCH,
    labels,
    main,
    pictures,
    time_blocks,
    weights,
)
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build() -> nn.Module:
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 512),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    dense = [layer for layer in model if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        for layer, (kernel, bias) in zip(dense, weights(), strict=True):
            layer.weight.copy_(torch.from_numpy(kernel.T))
            layer.bias.copy_(torch.from_numpy(bias))
    return model


def samples() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(pictures()), torch.from_numpy(labels()).long()


def adam(model: nn.Module, *, fused: bool | None = None) -> torch.optim.Optimizer:
    """With Keras' epsilon, which is another one at each of PyTorch's steps."""
    optimizer = torch.optim.Adam(model.parameters(), RATE, eps=EPSILON, fused=fused)
    steps = itertools.count(1)

    def keras_epsilon(*_: object) -> None:
        optimizer.param_groups[0]["eps"] = EPSILON / math.sqrt(1 - BETA_2 ** next(steps))

    optimizer.register_step_pre_hook(keras_epsilon)
    return optimizer


def naive(seconds: float) -> list[float]:
    """The loop of PyTorch's tutorials: a DataLoader, and the loss read every step."""
    model, criterion = build(), nn.CrossEntropyLoss()
    optimizer = adam(model)
    loader = DataLoader(TensorDataset(*samples()), BATCH, shuffle=True, drop_last=True)
    batches = iter(loader)

    def train(count: int) -> None:
        nonlocal batches
        for _ in range(count):
            batch = next(batches, None)
            if batch is None:
                batches = iter(loader)
                batch = next(batches)
            x, y = batch
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            loss.item()

    return time_blocks(train, seconds)


def tuned(seconds: float) -> list[float]:
    """Batches gathered from one tensor, fused updates, the loss never read."""
    model = build()
    optimizer = adam(model, fused=True)
    data_x, data_y = samples()
    order = torch.randperm(STEPS_PER_EPOCH * BATCH)
    trained = 0

    def train(count: int) -> None:
        nonlocal trained
        for number in range(trained, trained + count):
            first = number % STEPS_PER_EPOCH * BATCH
            rows = order[first : first + BATCH]
            x, y = data_x.index_select(0, rows), data_y.index_select(0, rows)
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        trained += count

    return time_blocks(train, seconds)


if __name__ == "__main__":
    main({"naive": naive, "tuned": tuned})
