"""PyTorch's forms of ``tuned`` on CUDA, on a CPU: the same steps, without the graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.fakes.workloads import small, variant

from bench_agent.engines.seam import Session, Start
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Precision
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload
from bench_protocol.training.reading import COUNTED_ON

from . import test_reading as reading
from .conftest import Opener, form_of, losses, without_dropout

Step = Callable[[], None]
PLAIN, GRAPH, COMPILED = "eager", "cuda_graph", "compiled_cuda_graph"
BATCH, BATCHES = 16, 4
MLP = small(workload_named("fashion-mlp"), BATCH * BATCHES + 5)
CNN = small(workload_named("mnist-cnn"), BATCH * BATCHES + 5)


def in_form(
    opened: Opener, form: str, workload: Workload, precision: Precision = "float32"
) -> Session:
    with form_of("torch", form):
        return opened("torch", workload, "tuned", BATCH, precision)


def trained(session: Session) -> list[np.ndarray]:
    return list(session.trained_parameters())


def same_training(
    opened: Opener, form: str, workload: Workload, precision: Precision = "float32"
) -> None:
    """Train over two epochs' ends, whose later orders are shuffled, and after a restart."""
    plain, other = (in_form(opened, one, workload, precision) for one in (PLAIN, form))
    tolerance = 1e-5 if precision == "float32" else 2e-2
    steps = 2 * BATCHES + 2
    right = losses(plain, steps)
    assert len(set(right)) == steps
    assert losses(other, steps) == pytest.approx(right, rel=tolerance)
    assert other.step_count() == plain.step_count() == steps
    if precision == "float32":
        for now, expected in zip(trained(other), trained(plain), strict=True):
            np.testing.assert_allclose(now, expected, atol=1e-4)
    orders = (seeded.order(workload.data_set.train_samples, 1),)
    for session in (plain, other):
        session.restart(Start(seeded.initial_weights(workload), orders, 3, dropout=True))
    assert other.step_count() == steps + COUNTED_ON
    right = losses(plain, BATCHES)
    assert losses(other, BATCHES) == pytest.approx(right, rel=tolerance)


def recorded(step: Step) -> Step:
    """A CUDA graph on a CPU: the operations of one step, repeated on the same memory. It fails
    where the step reads a number back."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    from bench_agent.engines.torch import captured

    calls: list[tuple[Any, ...]] = []

    class Recorder(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            assert "_local_scalar_dense" not in str(function), "a graph cannot read a number back"
            result = function(*args, **(kwargs or {}))
            calls.append((function, args, kwargs or {}, result))
            return result

    for _ in range(captured.WARM_UP_STEPS):
        step()
    with Recorder():
        step()

    def replay() -> None:
        with torch.no_grad():
            for function, args, kwargs, result in calls:
                again = function(*args, **kwargs)
                for new, old in zip(tree_leaves(again), tree_leaves(result), strict=True):
                    if isinstance(new, torch.Tensor) and new.data_ptr() != old.data_ptr():
                        old.copy_(new)

    return replay


@pytest.mark.parametrize("optimizer", [Adam(), RMSprop(), SGD(momentum=0.9)])
def test_a_step_that_is_recorded_once_and_repeated_trains_as_the_plain_one(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, optimizer: Optimizer
) -> None:
    from bench_agent.engines.torch import captured

    monkeypatch.setattr(captured, "as_it_is", recorded)
    same_training(opened, GRAPH, variant(without_dropout(MLP), optimizer=optimizer))


def test_a_recorded_step_is_recorded_again_where_dropout_is_switched(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay of it draws new masks: its random numbers are operations too."""
    from bench_agent.engines.torch import captured

    monkeypatch.setattr(captured, "as_it_is", recorded)
    reading.off_and_on(in_form(opened, GRAPH, reading.MLP))


@pytest.mark.long
def test_the_compiled_step_trains_as_the_plain_one(opened: Opener) -> None:
    """By Inductor, which compiles C++ on a CPU."""
    same_training(opened, COMPILED, without_dropout(MLP))
    same_training(opened, COMPILED, without_dropout(CNN), "mixed_bfloat16")


@pytest.mark.long
def test_a_layer_that_cannot_be_compiled_is_no_compiled_form(opened: Opener) -> None:
    lstm = small(workload_named("fashion-lstm"), BATCH * BATCHES)
    with pytest.raises(Exception, match="LSTM|graph break|fullgraph"):
        in_form(opened, COMPILED, lstm)


@pytest.mark.parametrize("name", ["fashion-cnn", "fashion-lstm"])
def test_a_reading_of_the_captured_step_is_the_recomputation(opened: Opener, name: str) -> None:
    workload = reading.WORKLOADS[name]
    session = reading.trained(in_form(opened, GRAPH, workload))
    figures = reading.read(session, workload)
    assert reading.deviation(figures, reading.recomputed(workload)) < reading.TOLERANCE


def test_an_unknown_form_is_refused_with_the_known_ones(opened: Opener) -> None:
    with pytest.raises(LookupError, match="eager, cuda_graph, compiled_cuda_graph"):
        in_form(opened, "graph", MLP)


def test_adams_rate_has_settled_where_its_table_ends() -> None:
    from bench_agent.engines.torch.device_optimizer import adam_rates

    rates = adam_rates(Adam())
    assert rates[-1] == np.float32(Adam().learning_rate)
    assert len(rates) < 20_000
