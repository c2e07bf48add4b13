"""The long trace: many steps in one call, over an epoch's end, beside its recomputation."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.fakes.workloads import cell_of

from bench_agent.worker import conformance_trace
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import Recipe
from bench_protocol.payload.result import Trace
from bench_protocol.recompute import figures
from bench_protocol.training import conformance
from bench_protocol.training import long_trace as long_trace_verdict
from bench_protocol.training.conformance import Reference
from bench_protocol.training.recomputation import SeededJob, trace_reference

from .conftest import installed
from .loops import every_pair_with

LONG = [workload.name for workload in CATALOGUE if conformance.is_long_traced(workload)]


NONCE = "5e" * 32


@cache
def right(name: str) -> Reference:
    """The recomputed long trace."""
    workload = workload_named(name)
    batch_size = conformance.trace_batch_size(workload)
    made = figures(workload, "long", NONCE, batch_size)
    return trace_reference(SeededJob(workload, "long", NONCE, batch_size), made)


def long_trace(framework: str, recipe: Recipe, name: str) -> Trace:
    workload = workload_named(name)
    cell = cell_of(workload, framework, recipe)
    engine = installed(framework)
    engine.load(workload, cell)
    return conformance_trace.trace(engine, workload, cell, "long", cell.precision, NONCE)


def deviation(trace: Trace, name: str) -> float:
    """The largest relative one, of losses and movements."""
    made = right(name).figures
    losses = [made.losses[step - 1] for step in conformance.LONG_STEPS]
    found = np.array([*trace.losses, *trace.movements], float)
    expected = np.array([*losses, *made.movements])
    return float(np.max(np.abs(found / expected - 1)))


def test_small_workloads_have_a_long_trace() -> None:
    assert "fashion-convnet" in LONG
    assert not {"cifar100-vgg16", "resnet50-transfer"} & set(LONG)
    first, last, end = conformance.LONG_STEPS
    assert (first, last - first > 16) == (1, True)
    assert last < conformance.LONG_BATCHES < end


# The conformance tests take the other turn: between them each workload is trained naive and tuned.
@every_pair_with(LONG, turn=1)
def test_every_loop_trains_what_is_recomputed(framework: str, recipe: Recipe, name: str) -> None:
    trace = long_trace(framework, recipe, name)
    assert trace.steps == conformance.LONG_STEPS
    cell = cell_of(workload_named(name), framework, recipe)
    verdict = long_trace_verdict.judge(cell, workload_named(name), (trace,), right(name))
    assert verdict.kind == "conformant", verdict.sentence


Train = Callable[[Any, int, int], None]


def half(train: Train) -> Train:
    """Trains every second step of a call."""

    def faulty(session: Any, first: int, count: int) -> None:
        for step in range(first, first + count, 2):
            train(session, step, 1)

    return faulty


def first_only(train: Train) -> Train:
    """Trains only the first step of a call."""
    return lambda session, first, count: train(session, first, 1)


def same_batch(train: Train) -> Train:
    """Trains the first batch of a call again and again."""

    def faulty(session: Any, first: int, count: int) -> None:
        for _ in range(count):
            train(session, first, 1)

    return faulty


@pytest.mark.parametrize("fault", [half, first_only, same_batch])
def test_a_fault_in_many_steps_shows(
    fault: Callable[[Train], Train], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In JAX, whose loop of many steps is one program."""
    from bench_agent.engines.jax.sessions import TunedSession

    monkeypatch.setattr(TunedSession, "_train", fault(TunedSession._train))
    assert deviation(long_trace("jax", "tuned", "mnist-dense"), "mnist-dense") > 0.05


def test_a_momentum_that_is_thrown_away_each_epoch_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """In PyTorch, whose optimiser's state can be emptied between two batches."""
    from bench_agent.engines.torch.sessions import TunedSession

    before = TunedSession._reorder

    def emptied(self: Any, order: Any) -> None:
        self._optimizer.state.clear()
        before(self, order)

    monkeypatch.setattr(TunedSession, "_reorder", emptied)
    assert deviation(long_trace("torch", "tuned", "mnist-dense"), "mnist-dense") > 0.05


@pytest.mark.parametrize("fault", ["first batch 16 times", "one step of 16"])
def test_a_fault_in_tensorflows_unrolled_body_shows(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single steps run another loop, so no short trace meets it."""
    from bench_agent.engines.tensorflow import steps

    step_of = steps.StepsSession._step
    calls: list[Any] = []

    def faulty(self: Any, step: Any, number: Any) -> Any:
        """The first 16 calls trace the unrolled body, the next one the loop over the rest."""
        calls.append(step)
        if not 1 < len(calls) <= 16:
            return step_of(self, step, number)
        if fault == "one step of 16":
            return self._loss
        return step_of(self, calls[0], number)

    monkeypatch.setattr(steps.StepsSession, "_step", faulty)
    assert deviation(long_trace("tensorflow", "tuned", "mnist-dense"), "mnist-dense") > 0.05
    assert len(calls) == 17
