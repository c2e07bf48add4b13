"""PyTorch's training loops."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from bench_protocol.matrix import Precision
from bench_protocol.workloads import Workload

from ..precision import COMPUTE_TYPES, loss_scale, mixed_settings
from . import _torch_model
from ._common import Score, as_floats, evaluation_batches, next_slices
from ._torch_optimizer import optimizer
from .seam import Data

LARGEST_FLOAT_DATA_BYTES = 2**30


class TorchSession:
    """What the loops share. See :class:`.seam.Session`."""

    layers: Literal["stock", "safe"] = "stock"
    settings: Mapping[str, str]

    def __init__(
        self,
        workload: Workload,
        model: Any,
        batch_size: int,
        data: Data,
        device: Any,
        precision: Precision,
        *,
        fast: bool,
    ) -> None:
        import torch

        self._model = model.to(device)
        self._device = device
        self._data = data
        self._batch_size = batch_size
        self._steps_per_epoch = len(data.order) // batch_size
        self._position = 0
        self._trained = 0
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._optimizer = optimizer(workload.optimizer, trained, fast=fast)
        compute = COMPUTE_TYPES[precision]
        self._half: Any = None if compute == "float32" else getattr(torch, compute)
        self._scale = loss_scale(precision)
        self._model.train()

    def sync(self) -> None:
        import torch

        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        elif self._device.type == "mps":
            torch.mps.synchronize()

    def parameter_count(self) -> int:
        # With the fixed statistics of normalisations, which are no parameters to PyTorch.
        return sum(values.numel() for values in self._model.state_dict().values())

    def peak_memory_bytes(self) -> int | None:
        import torch

        if self._device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self._device))
        if self._device.type == "mps":
            # What PyTorch took from Metal; it keeps what it no longer uses.
            return int(torch.mps.driver_allocated_memory())
        return None

    def evaluate(self) -> tuple[float, float]:
        import torch

        self._model.eval()
        score = Score()
        with torch.no_grad():
            for x, y in evaluation_batches(self._data):
                inputs = torch.from_numpy(_torch_model.as_channels_first(x))
                score.add(self._logits(inputs.to(self._device)).cpu().numpy(), y)
        self._model.train()
        return score.result()

    def _logits(self, x: Any) -> Any:
        """The forward pass in the cell's precision; float32 (batch, classes)."""
        import torch

        if self._half is None:
            return self._model(x)
        with torch.autocast(self._device.type, dtype=self._half):
            logits = self._model(x)
        return logits.float()

    def _backward(self, loss: Any) -> None:
        import torch

        if self._scale == 1:
            loss.backward()
            return
        (loss * self._scale).backward()
        torch._foreach_div_(
            [p.grad for p in self._model.parameters() if p.requires_grad], self._scale
        )

    def placement(self) -> str:
        return str(next(self._model.parameters()).device)

    def close(self) -> None:
        import torch

        if self._device.type == "cuda":
            torch.cuda.empty_cache()


class NaiveSession(TorchSession):
    """The loop of PyTorch's tutorials: a DataLoader, and the loss read every step."""

    def __init__(
        self,
        workload: Workload,
        model: Any,
        batch_size: int,
        data: Data,
        device: Any,
        precision: Precision,
    ) -> None:
        super().__init__(workload, model, batch_size, data, device, precision, fast=False)
        import torch
        from torch.utils.data import TensorDataset

        pictures = _torch_model.as_channels_first(as_floats(data.train_x))
        labels = torch.from_numpy(data.train_y.astype(np.int64))
        self._samples = TensorDataset(torch.from_numpy(pictures), labels)
        self._batches: Iterator[Any] = iter(())
        self._criterion = torch.nn.CrossEntropyLoss()
        self._loss = float("nan")
        self.settings = {
            "loop": "eager",
            "input": "DataLoader",
            "compile": "false",
            **mixed_settings(precision),
        }

    def train_block(self, steps: int) -> None:
        for first, count in next_slices(self._position, steps, self._steps_per_epoch):
            if first == 0:
                self._batches = iter(self._loader())
            for _ in range(count):
                x, y = next(self._batches)
                x, y = x.to(self._device), y.to(self._device)
                self._optimizer.zero_grad()
                loss = self._criterion(self._logits(x), y)
                self._backward(loss)
                self._optimizer.step()
                self._loss = loss.item()
            self._position = first + count
            self._trained += count

    def loss(self) -> float:
        return self._loss

    def close(self) -> None:
        self._batches = iter(())
        super().close()

    def _loader(self) -> Any:
        """Batches of one epoch: the first in the job's order, later ones shuffled."""
        from torch.utils.data import DataLoader

        order = {"shuffle": True} if self._trained else {"sampler": self._data.order.tolist()}
        return DataLoader(self._samples, batch_size=self._batch_size, drop_last=True, **order)


class TunedSession(TorchSession):
    """Data on the device, batches gathered there, fused updates, the loss read when asked for."""

    def __init__(
        self,
        workload: Workload,
        model: Any,
        batch_size: int,
        data: Data,
        device: Any,
        precision: Precision,
        *,
        channels_last: bool,
    ) -> None:
        super().__init__(workload, model, batch_size, data, device, precision, fast=True)
        import torch

        keep_bytes = data.train_x.size * 4 > LARGEST_FLOAT_DATA_BYTES
        pictures = data.train_x if keep_bytes else as_floats(data.train_x)
        self._x = torch.from_numpy(_torch_model.as_channels_first(pictures)).to(device)
        if channels_last:
            self._x = self._x.to(memory_format=torch.channels_last)
        self._y = torch.from_numpy(data.train_y.astype(np.int64)).to(device)
        self._order = torch.from_numpy(data.order.astype(np.int64)).to(device)
        self._loss: Any = torch.tensor(float("nan"))
        self.settings = {
            "loop": "eager",
            "input": "gather on the device",
            "compile": "false",
            "data_on_device": "uint8" if keep_bytes else "float32",
            "memory_format": "channels_last" if channels_last else "contiguous",
            **mixed_settings(precision),
        }

    def train_block(self, steps: int) -> None:
        import torch

        batch = self._batch_size
        for first, count in next_slices(self._position, steps, self._steps_per_epoch):
            if first == 0 and self._trained:
                shuffled = torch.randperm(len(self._order), device=self._device)
                self._order = self._order[shuffled]
            rows = self._order[first * batch : (first + count) * batch]
            for picked in rows.split(batch):
                self._step(picked)
            self._position = first + count
            self._trained += count

    def loss(self) -> float:
        return float(self._loss.item())

    def _step(self, rows: Any) -> None:
        import torch
        from torch.nn import functional

        x, y = self._x.index_select(0, rows), self._y.index_select(0, rows)
        if x.dtype == torch.uint8:
            x = x.float() / 255
        loss = functional.cross_entropy(self._logits(x), y)
        self._optimizer.zero_grad(set_to_none=True)
        self._backward(loss)
        self._optimizer.step()
        self._loss = loss.detach()
