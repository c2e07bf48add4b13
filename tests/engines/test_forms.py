"""Forms of ``tuned`` on CUDA, on a CPU: each trains as the plain one; PyTorch's without a graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.fakes.modern import SMALL_GPT, SMALL_RESNET
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
# PyTorch's plain form and its others; TensorFlow's.
EAGER, CAPTURED, COMPILED = "eager", "cuda_graph", "compiled_cuda_graph"
GRAPH, XLA = "graph", "xla"
BATCH, BATCHES = reading.BATCH, reading.PER_EPOCH
MLP = reading.MLP


def in_form(
    opened: Opener, form: str, workload: Workload, precision: Precision = "float32"
) -> Session:
    framework = "tensorflow" if form in (GRAPH, XLA) else "torch"
    with form_of(framework, form):
        session = opened(framework, workload, "tuned", BATCH, precision)
    assert session.settings.get("jit_compile", "false") == str(form == XLA).lower()
    return session


def same_training(
    opened: Opener, form: str, workload: Workload, precision: Precision = "float32"
) -> None:
    """In single steps, in blocks over the ends of two shuffled epochs, and after a restart."""
    plain_form = GRAPH if form == XLA else EAGER
    plain, other = (in_form(opened, one, workload, precision) for one in (plain_form, form))
    tolerance = 2e-2 if precision != "float32" else 1e-4 if form == XLA else 1e-5
    assert losses(other, 2) == pytest.approx(losses(plain, 2), rel=tolerance)
    for _ in range(2):
        for session in (plain, other):
            session.train_block(BATCHES + 1)
            session.sync()
        assert other.loss() == pytest.approx(plain.loss(), rel=10 * tolerance)
    steps = 2 * BATCHES + 4
    assert other.step_count() == plain.step_count() == steps
    for now, expected in zip(other.trained_parameters(), plain.trained_parameters(), strict=True):
        np.testing.assert_allclose(now, expected, atol=10 * tolerance)
    orders = (seeded.order(workload.data_set.train_samples, 1),)
    for session in (plain, other):
        first = BATCHES - 2
        session.restart(Start(seeded.initial_weights(workload), orders, first, dropout=True))
    assert other.step_count() == steps + COUNTED_ON
    assert losses(other, 4) == pytest.approx(losses(plain, 4), rel=tolerance)


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


@pytest.fixture
def a_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed: make frameworks")
    from bench_agent.engines.torch import captured

    monkeypatch.setattr(captured, "as_it_is", recorded)


@pytest.mark.usefixtures("a_recorder")
@pytest.mark.parametrize(
    "workload",
    [
        variant(without_dropout(MLP), optimizer=RMSprop()),
        *(small(workload, BATCH * BATCHES) for workload in (SMALL_GPT, SMALL_RESNET)),
    ],
    ids=lambda workload: workload.name,
)
def test_a_step_that_is_recorded_once_and_repeated_trains_as_the_plain_one(
    opened: Opener, workload: Workload
) -> None:
    """Under RMSprop, Adam and SGD. Decay and running statistics are part of the step, and what
    warms it up changes neither weights nor statistics."""
    same_training(opened, CAPTURED, workload)


@pytest.mark.parametrize(
    "optimizer",
    [
        RMSprop(),
        pytest.param(Adam(), marks=pytest.mark.long),  # of a reading below
        pytest.param(SGD(momentum=0.9), marks=pytest.mark.long),
    ],
)
def test_xla_trains_as_the_plain_form(opened: Opener, optimizer: Optimizer) -> None:
    same_training(opened, XLA, variant(without_dropout(MLP), optimizer=optimizer))


@pytest.mark.long
@pytest.mark.parametrize(
    ("form", "name", "precision"),
    [
        (COMPILED, "fashion-mlp", "float32"),  # by Inductor, which compiles C++ on a CPU
        (COMPILED, "mnist-cnn", "mixed_bfloat16"),
        (XLA, "mnist-cnn", "float32"),
        (XLA, "fashion-lstm", "float32"),
        (XLA, "mnist-cnn", "mixed_bfloat16"),
    ],
)
def test_what_takes_long_to_compile_trains_as_the_plain_form(
    opened: Opener, form: str, name: str, precision: Precision
) -> None:
    """Under SGD: RMSprop amplifies rounding in a convolution to 5e-3 in as many steps."""
    workload = without_dropout(small(workload_named(name), BATCH * BATCHES))
    same_training(opened, form, variant(workload, optimizer=SGD()), precision)


@pytest.mark.usefixtures("a_recorder")
def test_a_recorded_step_is_recorded_again_where_dropout_is_switched(opened: Opener) -> None:
    """A replay of it draws new masks: its random numbers are operations too."""
    reading.off_and_on(in_form(opened, CAPTURED, MLP))


def test_under_xla_dropout_is_off_and_on(opened: Opener) -> None:
    reading.off_and_on(in_form(opened, XLA, MLP))


@pytest.mark.long
def test_a_layer_that_cannot_be_compiled_is_no_compiled_form(opened: Opener) -> None:
    lstm = small(workload_named("fashion-lstm"), BATCH * BATCHES)
    with pytest.raises(Exception, match="LSTM|graph break|fullgraph"):
        in_form(opened, COMPILED, lstm)


@pytest.mark.parametrize("name", ["fashion-cnn", "fashion-lstm"])
def test_a_reading_of_the_captured_step_is_the_recomputation(opened: Opener, name: str) -> None:
    workload = reading.WORKLOADS[name]
    session = reading.trained(in_form(opened, CAPTURED, workload))
    figures = reading.read(session, workload)
    assert reading.deviation(figures, reading.recomputed(workload)) < reading.TOLERANCE


def test_an_unknown_form_is_refused_with_the_known_ones(opened: Opener) -> None:
    with pytest.raises(LookupError, match="eager, cuda_graph, compiled_cuda_graph"):
        in_form(opened, "unknown", MLP)


def test_adams_rate_has_settled_where_its_table_ends() -> None:
    from bench_agent.engines.torch.device_optimizer import adam_rates

    rates = adam_rates(Adam())
    assert rates[-1] == np.float32(Adam().learning_rate)
    assert len(rates) < 20_000


@pytest.mark.parametrize("form", [GRAPH, XLA])
def test_indices_of_a_gpu_train_the_same(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """On CUDA they are int64, because TensorFlow keeps int32 on the host."""
    from bench_agent.engines.tensorflow import steps

    workload = without_dropout(MLP)
    right = losses(in_form(opened, GRAPH, workload), 2)
    made = steps.StepsSession.__init__

    def with_int64(session: object, built: object, *, indices: str, **others: object) -> None:
        assert indices == "int32"
        made(session, built, indices="int64", **others)  # type: ignore[arg-type]

    monkeypatch.setattr(steps.StepsSession, "__init__", with_int64)
    session = in_form(opened, form, workload)
    assert session.settings["indices"] == "int64"
    assert losses(session, 2) == pytest.approx(right, rel=1e-5)
