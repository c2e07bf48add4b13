"""PyTorch's training loops."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ..common import as_inputs, resident
from ..cpu import malloc
from ..loop import SlicedLoop, TrainingLoop
from ..seam import Data
from . import model as torch_model
from . import trained
from .optimizer import optimizer, own_step_count
from .products import synchronize


class TorchSession(TrainingLoop):
    fast = False
    """Whether updates are PyTorch's fused ones."""

    def __init__(self, workload: Workload, cell: Cell, data: Data, model: Any, device: Any) -> None:
        super().__init__(workload, cell, data)
        self._model = model.to(device)
        self._device = device
        self._loss = float("nan")
        self._optimizer = self._new_optimizer()
        self._half = None if self._compute == "float32" else getattr(torch, self._compute)
        self._model.train()

    def _trained_values(self) -> list[Any]:
        return [values for values in self._model.parameters() if values.requires_grad]

    def _new_optimizer(self) -> Any:
        return optimizer(self._workload.optimizer, self._trained_values(), fast=self.fast)

    def _switch_dropout(self) -> None:
        trained.switch_dropout(self._workload, self._model, self._drops)

    def _set_state(self, weights: Weights, first: bool) -> None:
        trained.set_trained(self._workload, self._model, weights, self._batch_size)
        self._optimizer.restart(first)

    def sync(self) -> None:
        synchronize(self._device)

    def parameter_count(self) -> int:
        # Includes the fixed statistics of normalisations, which PyTorch does not count as
        # parameters.
        return sum(values.numel() for values in self._model.state_dict().values())

    def peak_memory_bytes(self) -> int | None:
        if self._device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self._device))
        if self._device.type == "mps":
            # Memory that PyTorch allocated from Metal, including what it no longer uses.
            return int(torch.mps.driver_allocated_memory())
        return None

    def _inferred(self, x: NDArray[Any]) -> NDArray[np.float32]:
        # Put each layer back as it was: a layer that does not drop in training must stay so.
        modes = [(module, module.training) for module in self._model.modules()]
        self._model.eval()
        inputs = torch.from_numpy(torch_model.as_channels_first(x))
        with torch.no_grad():
            logits: NDArray[np.float32] = self._logits(inputs.to(self._device)).cpu().numpy()
        for module, training in modes:
            module.training = training
        return logits

    def _logits(self, x: Any) -> Any:
        """The forward pass in the cell's precision; float32 (batch, classes), or (batch, steps,
        classes) for tokens."""
        if self._half is None:
            return self._model(x)
        with torch.autocast(self._device.type, dtype=self._half):
            logits = self._model(x)
        return logits.float()

    def _backward(self, loss: Any) -> None:
        if self._scale == 1:
            loss.backward()
            return
        (loss * self._scale).backward()
        torch._foreach_div_([values.grad for values in self._trained_values()], self._scale)

    def placement(self) -> str:
        return str(next(self._model.parameters()).device)

    @property
    def counted_by(self) -> Literal["optimizer", "loop"]:
        return "loop" if own_step_count(self._optimizer) is None else "optimizer"

    def step_count(self) -> int:
        own = own_step_count(self._optimizer)
        return self._trained if own is None else own

    def trained_parameters(self) -> Iterator[NDArray[np.float32]]:
        return trained.trained_parameters(self._workload, self._model)

    def close(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


class FedSession(TorchSession):
    """The loop of PyTorch's tutorials, fed by a DataLoader.

    ``naive`` collates sample by sample and reads the loss every step. ``pipeline`` loads a batch
    at once ("bulk", by PyTorch's documentation of ``batch_size=None``), pinned if there is a
    GPU that copies it during training, and reads the loss on request. It uses no worker processes:
    the samples are in memory, and passing a batch on costs more than gathering it.
    """

    def __init__(self, workload: Workload, cell: Cell, data: Data, model: Any, device: Any) -> None:
        super().__init__(workload, cell, data, model, device)
        samples = torch_model.as_channels_first(as_inputs(data.train_x))
        labels = torch.from_numpy(data.train_y.astype(np.int64))
        self._samples = TensorDataset(torch.from_numpy(samples), labels)
        self._begin((data.order,))
        self._criterion = torch.nn.CrossEntropyLoss()
        self.settings = {
            "loop": "eager",
            "input": "DataLoader, batches in bulk" if self._pipeline else "DataLoader",
            "compile": "false",
            **self._mixed_settings,
        }

    def _begin(self, orders: Sequence[NDArray[np.int32]], first: int = 0) -> None:
        self._batches = self._epochs(orders, first)

    def train_block(self, steps: int) -> None:
        for x, y in islice(map(self._on_device, self._batches), steps):
            self._optimizer.zero_grad()
            loss = self._criterion(self._logits(x).flatten(0, -2), y.flatten())
            self._backward(loss)
            self._optimizer.step()
            self._trained += 1
            self._loss = loss.detach() if self._pipeline else loss.item()

    def copied_batches(self, count: int) -> list[NDArray[Any]]:
        batches = [x for x, _ in islice(map(self._on_device, self._batches), count)]
        return [torch_model.on_host(batch) for batch in batches]

    def _on_device(self, batch: Any) -> tuple[Any, ...]:
        """A batch on the device, copied while the device computes where that is safe."""
        # Copy asynchronously only from pinned memory. On Metal such a copy can read
        # memory that was released (pytorch issue 189690).
        beside = self._pipeline and self._device.type == "cuda"
        return tuple(part.to(self._device, non_blocking=beside) for part in batch)

    def close(self) -> None:
        self._batches = iter(())
        super().close()

    def _epochs(self, orders: Sequence[NDArray[np.int32]], first: int) -> Iterator[Any]:
        """Endless batches: from batch ``first`` on of the first order, later epochs shuffled unless
        their orders are given."""
        for order in orders:
            yield from self._loader(order[first * self._batch_size :].tolist())
            first = 0
        while True:
            yield from self._loader(RandomSampler(self._samples))

    def _loader(self, sampler: Any) -> Any:
        if not self._pipeline:
            return DataLoader(self._samples, self._batch_size, sampler=sampler, drop_last=True)
        batches = BatchSampler(sampler, self._batch_size, drop_last=True)
        pinned = self._device.type == "cuda"
        return DataLoader(self._samples, batch_size=None, sampler=batches, pin_memory=pinned)


class TunedSession(SlicedLoop, TorchSession):
    """Data on the device, batches gathered there, fused updates, the loss read on request. On a CPU
    the process reuses the memory that a step frees."""

    fast = True

    def __init__(
        self,
        workload: Workload,
        cell: Cell,
        data: Data,
        model: Any,
        device: Any,
        *,
        channels_last: bool,
    ) -> None:
        super().__init__(workload, cell, data, model, device)
        self._batch_loss: Callable[[Any, Any], Any] = self._loss_of
        samples = resident(data.train_x)
        self._x = torch.from_numpy(torch_model.as_channels_first(samples)).to(device)
        if channels_last:
            self._x = self._x.to(memory_format=torch.channels_last)
        self._y = torch.from_numpy(data.train_y.astype(np.int64)).to(device)
        self._begin((data.order,))
        memory_kept = self._on_cpu and malloc.keep()
        self.settings = {
            "loop": "eager",
            "input": "gather on the device",
            "compile": "false",
            "data_on_device": str(samples.dtype),
            "memory_format": "channels_last" if channels_last else "contiguous",
            "memory_kept": str(memory_kept).lower(),
            **self._mixed_settings,
        }

    def _reorder(self, order: NDArray[np.int32]) -> None:
        self._order = torch.from_numpy(order.astype(np.int64)).to(self._device)

    def _train(self, first: int, count: int) -> None:
        batch = self._batch_size
        for rows in self._order[first * batch : (first + count) * batch].split(batch):
            self._step(rows)

    def copied_batches(self, count: int) -> list[NDArray[Any]]:
        rows = self._order[: count * self._batch_size].split(self._batch_size)
        batches = [self._inputs(some) for some in rows]
        return [torch_model.on_host(batch) for batch in batches]

    def _inputs(self, rows: Any) -> Any:
        x = self._x.index_select(0, rows)
        return x.float() / 255 if x.dtype == torch.uint8 else x

    def _loss_of(self, x: Any, y: Any) -> Any:
        return functional.cross_entropy(self._logits(x).flatten(0, -2), y.flatten())

    def _step(self, rows: Any) -> None:
        loss = self._batch_loss(self._inputs(rows), self._y.index_select(0, rows))
        self._optimizer.zero_grad(set_to_none=True)
        self._backward(loss)
        self._optimizer.step()
        self._loss = loss.detach()
