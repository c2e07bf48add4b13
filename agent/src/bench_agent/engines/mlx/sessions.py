"""MLX's training loops."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Literal

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx.utils import tree_flatten, tree_map
from numpy.typing import NDArray

from bench_protocol.catalogue.layers import LSTM
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ..common import resident
from ..cpu import chains as cpu_chains
from ..cpu import malloc
from ..loop import HostBatches, SlicedLoop, TrainingLoop
from ..seam import Data
from . import model as mlx_model
from . import optimizer as mlx_optimizer
from .products import synchronize

# Rare evaluation lets the device run behind Python; no evaluation would build one graph per block.
STEPS_PER_EVALUATION = 8


class MlxSession(TrainingLoop):
    def __init__(self, workload: Workload, cell: Cell, data: Data, model: Any) -> None:
        super().__init__(workload, cell, data)
        self._model = model
        self._loss = mx.array(float("nan"))
        self._optimizer = mlx_optimizer.optimizer(workload.optimizer)
        self._optimizer.init(model.trainable_parameters())
        self._compute = getattr(mx, self._compute)
        # Create it once: construction costs as much as some layers of a small model.
        self._gradients = mx.value_and_grad(self._scaled_loss)
        model.train()
        mx.eval(model.state, self._optimizer.state)

    def _switch_dropout(self) -> None:
        mlx_model.switch_dropout(self._workload, self._model, self._drops)

    def _set_state(self, weights: Weights, first: bool) -> None:
        mlx_model.set_trained(self._workload, self._model, weights)
        mlx_optimizer.restart(self._workload.optimizer, self._optimizer, first)
        mx.eval(self._model.state, self._optimizer.state)

    def sync(self) -> None:
        synchronize(self._model.state, self._optimizer.state, self._loss)

    def parameter_count(self) -> int:
        arrays = (array for _, array in tree_flatten(self._model.state))
        return sum(array.size for array in arrays if isinstance(array, mx.array))

    def peak_memory_bytes(self) -> int | None:
        return int(mx.get_peak_memory())

    def _inferred(self, x: NDArray[Any]) -> NDArray[np.float32]:
        # Put each layer back as it was: a layer that does not drop in training must stay so.
        modes = [(module, module.training) for module in self._model.modules()]
        self._model.eval()
        logits = np.array(self._logits(self._model.trainable_parameters(), mx.array(x)))
        for module, training in modes:
            module._training = training
        return logits

    def _logits(self, trained: Any, x: Any) -> Any:
        """The forward pass in the cell's precision; logits in float32. The model's
        parameters are then its former ones, or the given ones."""
        if self._compute == mx.float32:
            self._model.update(trained)
            return self._model(x)
        whole = self._model.parameters()
        for parameters in (whole, trained):
            self._model.update(tree_map(lambda value: value.astype(self._compute), parameters))
        x = x.astype(self._compute) if x.dtype == mx.float32 else x
        logits = self._model(x).astype(mx.float32)
        self._model.update(whole)
        return logits

    def _loss_and_gradients(self, x: Any, y: Any) -> Any:
        trained = self._model.trainable_parameters()
        loss, gradients = self._gradients(trained, x, y)
        if self._scale != 1:
            loss, gradients = tree_map(lambda value: value / self._scale, (loss, gradients))
        return loss, gradients

    def _scaled_loss(self, trained: Any, x: Any, y: Any) -> Any:
        loss = nn.losses.cross_entropy(self._logits(trained, x), y, reduction="mean")
        return loss if self._scale == 1 else loss * self._scale

    def placement(self) -> str:
        return str(mx.default_device())

    @property
    def counted_by(self) -> Literal["optimizer", "loop"]:
        return "optimizer"

    def step_count(self) -> int:
        return int(self._optimizer.step.item())

    def trained_parameters(self) -> Iterator[NDArray[np.float32]]:
        return mlx_model.trained_parameters(self._workload, self._model)

    def close(self) -> None:
        mx.clear_cache()


class FedSession(MlxSession):
    """A batch from NumPy, a step, evaluate everything: in ``naive`` every step, with the loss, in
    ``pipeline`` at the end of each epoch and at ``sync``, which ends each timed block."""

    def __init__(self, workload: Workload, cell: Cell, data: Data, model: Any) -> None:
        super().__init__(workload, cell, data, model)
        self._steps_per_evaluation = self._steps_per_epoch if self._pipeline else 1
        self._host = HostBatches(data, cell.batch_size)
        self._begin((data.order,))
        self.settings = {
            "loop": "lazy" if self._pipeline else "eager",
            "steps_per_evaluation": "a block, at most an epoch" if self._pipeline else "1",
            "compile": "false",
            **self._mixed_settings,
        }

    @property
    def repeated_epochs(self) -> int:
        return self._host.repeated_epochs

    def _begin(self, orders: Sequence[NDArray[np.int32]], first: int = 0) -> None:
        self._position = first
        self._batches = map(_on_device, self._host.of(orders, first))

    def train_block(self, steps: int) -> None:
        for x, y in islice(self._batches, steps):
            self._loss, gradients = self._loss_and_gradients(x, y)
            self._optimizer.update(self._model, gradients)
            self._trained += 1
            self._position += 1
            if self._position % self._steps_per_evaluation == 0:
                mx.eval(self._model.state, self._optimizer.state)
                self._loss.item()

    def copied_batches(self, count: int) -> list[NDArray[Any]]:
        batches = [x for x, _ in islice(self._batches, count)]
        return [np.array(batch) for batch in batches]


def _on_device(batch: tuple[NDArray[Any], NDArray[np.int32]]) -> tuple[Any, Any]:
    """Copy arrays to the device. NumPy's are freed at once: the next batch reuses their memory."""
    x, y = batch
    return mx.array(x), mx.array(y)


def _cpu_streams(count: int) -> list[Any]:
    """Streams, each with a thread that uses one core. The first becomes the default."""
    streams = [mx.new_stream(mx.default_device()) for _ in range(count)]
    mx.set_default_stream(streams[0])
    return streams


class TunedSession(SlicedLoop, MlxSession):
    """Data on the device, batches gathered there, a compiled step, evaluated every few steps."""

    def __init__(
        self, workload: Workload, cell: Cell, data: Data, model: Any, *, may_compile: bool
    ) -> None:
        super().__init__(workload, cell, data, model)
        on_cpu = self._on_cpu
        chains = cpu_chains.one_core_chains(workload, cell.batch_size) if on_cpu else 1
        memory_kept = on_cpu and malloc.keep()
        device = mx.default_device()
        self._streams = _cpu_streams(chains) if on_cpu else [mx.default_stream(device)]
        self._x = mx.array(resident(data.train_x))
        self._y = mx.array(data.train_y)
        self._begin((data.order,))
        # Dropout draws from the random state: without it, a compiled step repeats its first mask.
        self._state = [model.state, self._optimizer.state, mx.random.state]
        recurrent = any(isinstance(layer, LSTM) for layer in workload.layers)
        # On a CPU, compilation makes an LSTM's many small operations slower.
        self._compiled = may_compile and not (on_cpu and recurrent)
        self._step = self._new_step()
        mx.eval(self._x, self._y, self._order)
        self.settings = {
            "loop": "lazy",
            "steps_per_evaluation": str(STEPS_PER_EVALUATION),
            "compile": str(self._compiled).lower(),
            "chains": str(chains),
            "memory_kept": str(memory_kept).lower(),
            "data_on_device": str(self._x.dtype).removeprefix("mlx.core."),
            **self._mixed_settings,
        }

    def _switch_dropout(self) -> None:
        super()._switch_dropout()
        self._step = self._new_step()

    def _new_step(self) -> Any:
        """The step; where it is compiled, its first call compiles it, with the dropout rates."""
        if not self._compiled:
            return self._plain_step
        return mx.compile(self._plain_step, inputs=self._state, outputs=self._state)

    def _reorder(self, order: NDArray[np.int32]) -> None:
        self._order = mx.array(order)

    def _train(self, first: int, count: int) -> None:
        batch = self._batch_size
        for step in range(first, first + count):
            rows = self._order[step * batch : (step + 1) * batch]
            self._loss = self._step(self._x, self._y, rows)
            if (step + 1) % STEPS_PER_EVALUATION == 0:
                mx.eval(self._state, self._loss)

    def copied_batches(self, count: int) -> list[NDArray[Any]]:
        rows = mx.split(self._order[: count * self._batch_size], count)
        batches = [_inputs(self._x, some) for some in rows]
        return [np.array(batch) for batch in batches]

    def sync(self) -> None:
        synchronize(self._state, self._loss)

    def _plain_step(self, data_x: Any, data_y: Any, rows: Any) -> Any:
        parts, trained = [], self._model.trainable_parameters()
        for stream, stream_rows in zip(
            self._streams, mx.split(rows, len(self._streams)), strict=True
        ):
            with mx.stream(stream):
                x, y = _inputs(data_x, stream_rows), data_y[stream_rows]
                parts.append(self._loss_and_gradients(x, y))
                # Every stream starts with the trained parameters, not with another's.
                self._model.update(trained)
        loss, gradients = parts[0]
        if len(parts) > 1:
            loss, gradients = tree_map(lambda *values: sum(values) / len(values), *parts)
        self._optimizer.update(self._model, gradients)
        return loss


def _inputs(data: Any, rows: Any) -> Any:
    x = data[rows]
    return x.astype(mx.float32) / 255 if x.dtype == mx.uint8 else x
