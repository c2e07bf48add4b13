"""Faults in a model, in every session."""

from typing import Any

from bench_agent.engines.seam import Data
from bench_protocol.catalogue.layers import Dense
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ..fault import Fault, Job, Setup, changed_workload, patched
from .optimiser import JAX, MLX, TF

CNN = Setup("mnist-cnn", "jax")
MLP = Setup("fashion-mlp", "tensorflow")


def no_relu(workload: Workload, cell: Cell, weights: Weights, data: Data) -> Job:
    layers = list(workload.layers)
    index = next(n for n, layer in enumerate(layers) if isinstance(layer, Dense))
    layers[index] = layers[index].model_copy(update={"activation": "linear"})
    return changed_workload(workload, layers=tuple(layers)), cell, weights, data


def mean_pooling(x: Any, layer: Any, fast: bool) -> Any:
    rows, columns = x.shape[1] // 2, x.shape[2] // 2
    x = x[:, : 2 * rows, : 2 * columns].reshape(x.shape[0], rows, 2, columns, 2, -1)
    return x.mean(axis=(2, 4))


def one_part(whole: Any) -> Any:
    """TensorFlow: of the dense pair only the first share reaches the output."""

    def first_counts(shares: Any) -> Any:
        first, *others = whole(shares)
        return iter([first, *((kernel, bias, onward * 0) for kernel, bias, onward in others)])

    return first_counts


def one_chain(session: Any) -> None:
    """MLX: of a step's chains only the first is trained."""
    import mlx.core as mx

    plain = session._plain_step.__func__

    def step(data_x: Any, data_y: Any, rows: Any) -> Any:
        return plain(session, data_x, data_y, rows[: len(rows) // 2])

    session._step = mx.compile(step, inputs=session._state, outputs=session._state)


def quick_exponential(right: Any) -> Any:
    """JAX: the logits pass through a coarse type before the softmax."""
    return lambda logits, labels: right(logits.astype("bfloat16").astype("float32"), labels)


FAULTS = (
    Fault(
        "N4", "a ReLU is missing", "engines/tensorflow/keras_model.py", TF,
        lambda here: here.jobs(no_relu),
    ),
    Fault("N6", "mean in place of maximum pooling", "engines/jax/model.py", CNN,
          patched("jax.model:_max_pool", lambda _: mean_pooling)),
    Fault(
        "N7", "one of two shares of the dense pair", "engines/tensorflow/units.py", MLP,
        patched("tensorflow.units:WeightShares.__iter__", one_part),
    ),
    Fault(
        "N8", "the first half of each batch", "engines/mlx/sessions.py _plain_step", MLX,
        lambda here: here.sessions(one_chain),
    ),
    Fault("N9", "logits in bfloat16", "engines/jax/model.py mean_loss", JAX,
          patched("jax.model:mean_loss", quick_exponential)),
)  # fmt: skip
