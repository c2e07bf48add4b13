"""JAX and PyTorch only: alternative computations with the same result."""

from typing import Any, Literal

import numpy as np
import pytest
from tests.fakes.workloads import TINY, cell_of, small, variant

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.layers import Conv2D
from bench_protocol.catalogue.matrix import Device
from bench_protocol.catalogue.workloads import SGD

from .conftest import Opener, installed, losses, without_dropout

FRAMEWORKS = ("jax", "torch")
CNN = variant(small(workload_named("mnist-cnn"), 64), optimizer=SGD())


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_device_that_is_not_there_is_a_lookup_error(framework: str) -> None:
    engine, cell = installed(framework), cell_of(TINY, framework)
    if any(device.kind == "cuda" for device in engine.devices()):
        return
    with pytest.raises(LookupError, match="cuda"):
        engine.load(TINY, cell.model_copy(update={"device": Device(kind="cuda")}))


def test_fast_pooling_gives_a_ties_gradient_to_the_first() -> None:
    import jax

    from bench_agent.engines.jax import model
    from bench_protocol.catalogue.layers import MaxPool2D

    # Odd sizes: the last row and column belong to no window. Small whole numbers: many ties.
    x = np.random.default_rng(0).integers(0, 3, (2, 7, 5, 3)).astype(np.float32)

    def pooled(x: object, fast: bool) -> object:
        return (model._max_pool(x, MaxPool2D(), fast) ** 2).sum()

    for fast, plain in zip(
        *(jax.value_and_grad(pooled)(x, fast) for fast in (True, False)), strict=True
    ):
        np.testing.assert_array_equal(fast, plain)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", ["same", "valid"])
def test_a_convolution_as_a_product(
    size: int, stride: int, padding: Literal["same", "valid"]
) -> None:
    import jax

    from bench_agent.engines.jax import model

    layer = Conv2D(filters=4, kernel=size, stride=stride, padding=padding)
    values = np.random.default_rng(7)
    x = values.normal(size=(2, 7, 6, model.MANY_CHANNELS)).astype(np.float32)
    kernel = values.normal(size=(size, size, x.shape[-1], 4)).astype(np.float32)
    results = []
    for fast in (True, False):

        def loss(x: Any, kernel: Any, fast: bool = fast) -> Any:
            return (model._convolution(layer, x, kernel, fast) ** 2).sum()

        assert ("conv_general" in str(jax.make_jaxpr(loss)(x, kernel))) != fast
        results.append(
            [model._convolution(layer, x, kernel, fast), *jax.grad(loss, (0, 1))(x, kernel)]
        )
    for convolved, multiplied in zip(*results, strict=True):
        np.testing.assert_allclose(convolved, multiplied, rtol=1e-4, atol=1e-3)


def test_a_program_of_one_step_and_a_loop_train_the_same(opened: Opener) -> None:
    import jax

    single, looped = (opened("jax", CNN, "tuned", 16) for _ in range(2))
    assert single.settings["loop"] == "jit of a step"
    looped._looped = True  # type: ignore[attr-defined]
    looped._program = jax.jit(looped._steps, donate_argnums=0)  # type: ignore[attr-defined]
    for session in (single, looped):
        session.train_block(3)
        session.sync()
    assert looped.loss() == pytest.approx(single.loss(), rel=1e-5)


def test_any_length_of_a_block_trains_the_same_with_two_programs(opened: Opener) -> None:
    """Blocks over an epoch's end too, which has 32 steps; nothing is compiled after the first."""
    from jax import monitoring

    workload = small(workload_named("mnist-dense"), 32 * 16)
    one_by_one, blocks = (opened("jax", workload, "tuned", 16) for _ in range(2))
    assert blocks.settings["steps_per_call"] == "16"
    for session in (one_by_one, blocks):
        session.train_block(1)
    compiled: list[str] = []
    monitoring.register_event_duration_secs_listener(lambda event, *_, **__: compiled.append(event))
    for steps in (15, 16, 17, 31, 7, 48, 3):
        blocks.train_block(steps)
        blocks.sync()
        for _ in range(steps):
            one_by_one.train_block(1)
        assert blocks.loss() == pytest.approx(one_by_one.loss(), rel=1e-4), steps
    assert blocks.step_count() == one_by_one.step_count() == 138
    assert not [event for event in compiled if "compile" in event]
    weights = zip(blocks.trained_parameters(), one_by_one.trained_parameters(), strict=True)
    for trained, expected in weights:
        np.testing.assert_allclose(trained, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("recipe", ["naive", "pipeline", "tuned"])
def test_torch_copies_without_waiting_only_to_cuda(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    """On Metal such a copy can read memory that the loop has released (pytorch issue 189690)."""
    session = opened("torch", TINY, recipe, 16)
    import torch

    copied = []
    to = torch.Tensor.to

    def noted(tensor: Any, *places: Any, **options: Any) -> Any:
        copied.append(options.get("non_blocking", False))
        return to(tensor, *places, **options)

    monkeypatch.setattr(torch.Tensor, "to", noted)
    session.train_block(2)
    assert not any(copied)


def test_an_lstm_that_onednn_lacks_trains_by_pytorchs_own_kernels(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """oneDNN has no LSTM in bfloat16 before AVX-512: the session must not ask for one."""
    import torch

    from bench_agent.engines.torch import sequence

    with_onednn = []
    forward = torch.nn.LSTM.forward

    def watched(lstm: Any, x: Any) -> Any:
        with_onednn.append(torch.backends.mkldnn.enabled)
        return forward(lstm, x)

    monkeypatch.setattr(torch.nn.LSTM, "forward", watched)
    monkeypatch.setattr(sequence, "_onednn_has_bfloat16", lambda: False)
    workload = variant(without_dropout(small(workload_named("fashion-lstm"), 32)), optimizer=SGD())
    for precision, expected in (("float32", True), ("mixed_bfloat16", False)):
        with_onednn.clear()
        losses(opened("torch", workload, "naive", 16, precision), 2)
        assert set(with_onednn) == {expected}
    assert torch.backends.mkldnn.enabled


def test_torchs_matrix_product_is_that_of_a_dense_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its second factor is transposed. Without AVX-512 the plain product in bfloat16 was so much
    slower than training that honest results were in doubt (``own_product``)."""
    installed("torch")
    import torch

    from bench_agent.engines.torch.products import TorchProducts

    second: list[tuple[int, ...]] = []
    multiply = torch.mm

    def recorded(a: Any, b: Any) -> Any:
        second.append(b.stride())
        return multiply(a, b)

    monkeypatch.setattr(torch, "mm", recorded)
    TorchProducts(8, torch.device("cpu"), torch.bfloat16).request(2)
    assert second == [(1, 8), (1, 8)]
