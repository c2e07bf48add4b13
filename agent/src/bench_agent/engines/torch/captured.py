"""PyTorch's ``tuned`` on CUDA as one CUDA graph a step: batch, loss, gradients and update.

A graph launches all kernels of a step at once. It repeats them on the same memory, so all that
changes from step to step is on the device. PyTorch gives each replay the next random numbers of
the device's generator: dropout masks change. Source: PyTorch's notes on CUDA graphs ("Whole-network
capture").

This has run on one NVIDIA H200. The tests train the same step on a CPU, without the graph.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.workloads import Workload

from ..common import FRAMEWORK_SEED
from ..seam import Data
from .device_optimizer import DeviceOptimizer
from .sessions import TunedSession
from .trained import trained_values

# In the first steps libraries choose their algorithms and allocate, which a capture forbids.
WARM_UP_STEPS = 3
MOST_COMPILED = 64
Step = Callable[[], None]
Capture = Callable[[Step], Step]
"""Prepares a step: runs it some times, and returns what runs it from then on."""


def in_a_graph(step: Step) -> Step:
    """Warm up and capture a step; the result replays it."""
    # Autograd's nodes belong to the stream that they were made on: capture on the same one.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        as_it_is(step)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        step()
    replay: Step = graph.replay
    return replay


def as_it_is(step: Step) -> Step:
    """Warm up a step and capture nothing."""
    for _ in range(WARM_UP_STEPS):
        step()
    return step


class CapturedSession(TunedSession):
    """:class:`.sessions.TunedSession` with a step that needs no host; ``compiled``: by
    ``torch.compile``, whose kernels the graph then contains."""

    _optimizer: DeviceOptimizer

    def __init__(
        self,
        workload: Workload,
        cell: Cell,
        data: Data,
        model: Any,
        device: Any,
        *,
        channels_last: bool,
        compiled: bool,
        capture: Capture,
    ) -> None:
        # The number of the next batch of the epoch.
        self._next = torch.zeros(1, dtype=torch.int64, device=device)
        self._order = torch.zeros(len(data.order), dtype=torch.int64, device=device)
        super().__init__(workload, cell, data, model, device, channels_last=channels_last)
        whole = self._order[: self._steps_per_epoch * cell.batch_size]
        self._batches = whole.view(self._steps_per_epoch, cell.batch_size)
        if compiled:
            self._batch_loss = compiled_whole(self._batch_loss)
        self._capture = capture
        self._replay: Any = self._prepared()
        torch.manual_seed(FRAMEWORK_SEED)
        self.settings = {
            **self.settings,
            "loop": "CUDA graph of a step",
            "compile": str(compiled).lower(),
        }

    def _prepared(self) -> Step:
        """The captured step. Weights, optimiser and position are as before it."""
        changed = [*trained_values(self._model), *self._optimizer.tensors(), self._next]
        start = [values.detach().clone() for values in changed]
        replay = self._capture(self._step_of_next)
        with torch.no_grad():
            for values, before in zip(changed, start, strict=True):
                values.copy_(before)
        return replay

    def _switch_dropout(self) -> None:
        super()._switch_dropout()
        self._replay = None  # frees the graph's memory
        self._replay = self._prepared()

    def _step_of_next(self) -> None:
        """Train the next batch. After the last batch of the order comes the first."""
        self._step(self._batches.index_select(0, self._next).view(-1))
        self._next.add_(1).remainder_(self._steps_per_epoch)

    def _train(self, first: int, count: int) -> None:
        for _ in range(count):
            self._replay()

    def _reorder(self, order: NDArray[np.int32]) -> None:
        self._order.copy_(torch.from_numpy(order.astype(np.int64)))
        self._next.fill_(self._position)

    def _new_optimizer(self) -> DeviceOptimizer:
        return DeviceOptimizer(self._workload.optimizer, self._trained_values())

    def close(self) -> None:
        self._replay = None  # frees the graph's memory
        super().close()


def compiled_whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function compiled by ``torch.compile``. It raises where a part cannot be compiled, so that
    no figure of a compiled form is of an eager one."""
    # Each session compiles its own, and a worker opens more than the usual limit of 8.
    torch._dynamo.config.recompile_limit = MOST_COMPILED
    compiled: Callable[..., Any] = torch.compile(function, fullgraph=True, dynamic=False)
    return compiled
