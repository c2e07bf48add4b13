"""TensorFlow only: the gate around fit, the Metal probe, the LSTM."""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.fakes.workloads import TINY, cell_of, small, variant

from bench_agent.engines import engine_named
from bench_agent.engines.seam import WrongResult
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.seeded import initial_weights
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload

from .conftest import Opener, evaluated, losses, tiny_data, without_dropout


def test_what_breaks_inside_fit_comes_out_of_train_block(opened: Opener) -> None:
    session = opened("tensorflow", TINY)
    session.train_block(1)

    def broken(iterator: object) -> None:
        raise ValueError("planted")

    session._model.train_function = broken  # type: ignore[attr-defined]
    for _ in range(2):  # and again, instead of waiting for ever
        with pytest.raises(ValueError, match="planted"):
            session.train_block(1)
    session.close()


def test_a_closed_session_trains_no_more(opened: Opener) -> None:
    session = opened("tensorflow", TINY)
    thread = session._thread  # type: ignore[attr-defined]
    session.close()
    assert not thread.is_alive()
    with pytest.raises(RuntimeError, match="closed"):
        session.train_block(1)


def test_a_matrix_product_is_waited_for_by_reading_a_value(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Metal ``sync_devices`` returns at once; only a value that is read is certainly there."""
    import tensorflow as tf

    opened("tensorflow", TINY)
    products = engine_named("tensorflow").products(64)
    products.request(1)
    read = []
    tensor = type(tf.constant(0.0))
    numpy = tensor.numpy
    monkeypatch.setattr(tensor, "numpy", lambda self: read.append(self) or numpy(self))
    monkeypatch.setattr(tf.test.experimental, "sync_devices", lambda: None)
    products.sync()
    assert len(read) == 1


# Whether an operation is wrong in a form with these layers.
WRONG: dict[str, Callable[[str], bool]] = {
    "never": lambda layers: False,
    "always": lambda layers: True,
    "in stock layers": lambda layers: layers == "stock",
    "while fused": lambda layers: "TURN_OFF_REMAPPER" not in os.environ,
}


def planted(
    dense: str = "never", conv: str = "never", updates: str = "never", optimizer: str = ""
) -> tuple[Any, ...]:
    """The probe's forms on a device that forgets biases, or makes updates 5 % too large."""
    from bench_agent.engines.tensorflow import metal_probe as probe

    def changed(form: Any) -> Any:
        def layer(right: Any, wrong: str) -> Any:
            return lambda x, kernel, bias: right(
                x, kernel, 0.99 * bias if WRONG[wrong](form.layers) else bias
            )

        def train(settings: Any, gradients: Any) -> Any:
            moved = form.train(settings, gradients)
            is_wrong = settings.kind == optimizer and WRONG[updates](form.layers)
            return 1.05 * moved if is_wrong else moved

        return replace(
            form, dense=layer(form.dense, dense), conv=layer(form.conv, conv), train=train
        )

    return tuple(map(changed, probe.forms()))


@pytest.fixture
def no_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ.pop("TURN_OFF_REMAPPER", None)


@pytest.mark.parametrize(
    ("faults", "layers", "switch"),
    [
        ({}, "stock", None),
        ({"dense": "in stock layers"}, "safe", None),
        ({"conv": "in stock layers"}, "safe", None),
        ({"dense": "while fused"}, "stock", "1"),
        *(
            ({"updates": "while fused", "optimizer": kind} | more, layers, "1")
            for kind in ("rmsprop", "adam", "sgd")
            for more, layers in (({}, "stock"), ({"dense": "in stock layers"}, "safe"))
        ),
    ],
)
@pytest.mark.usefixtures("no_switch")
def test_the_first_right_form_is_chosen(
    faults: dict[str, Any], layers: str, switch: str | None
) -> None:
    """A wrong fusion is switched off before the layers are changed."""
    from bench_agent.engines.tensorflow import metal_probe as probe

    assert probe.right_form(planted(**faults)) == layers
    assert os.environ.get("TURN_OFF_REMAPPER") == switch


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"dense": "always"}, "deviates from NumPy; stock: dense and convolution layers by"),
        ({"updates": "always", "optimizer": "rmsprop"}, "stock: the updates of RMSprop by 5"),
    ],
)
@pytest.mark.usefixtures("no_switch")
def test_what_is_wrong_in_every_form_is_no_result(faults: dict[str, Any], message: str) -> None:
    from bench_agent.engines.tensorflow import metal_probe as probe

    with pytest.raises(WrongResult, match=message):
        probe.right_form(planted(**faults))


@pytest.mark.parametrize("tuned", [False, True])
def test_the_probe_finds_a_cpu_right_and_nan_wrong(tuned: bool) -> None:
    from bench_agent.engines.tensorflow import metal_probe as probe

    stock, _, safe, _ = probe.forms(tuned=tuned)
    assert probe.deviation(stock) < probe.TOLERANCE
    assert probe.deviation(safe) < probe.TOLERANCE
    for optimizer in probe.OPTIMIZERS:
        assert probe.update_deviation(stock, optimizer) < probe.UPDATE_TOLERANCE / 10
    nan = replace(
        stock,
        dense=lambda x, kernel, bias: stock.dense(x, kernel, bias) / 0.0 * 0.0,
        train=lambda settings, gradients: np.full(256, np.nan, np.float32),
    )
    assert probe.deviation(nan) == probe.update_deviation(nan, SGD()) == float("inf")


def safe_session(workload: Workload) -> Any:
    from bench_agent.engines.tensorflow import keras_model, shared, steps

    model = keras_model.build(workload, initial_weights(workload), safe=True)
    cell = cell_of(workload, "tensorflow", "tuned", 16)
    built = shared.Built(workload, cell, tiny_data(workload), model, "safe", "/CPU:0")
    return steps.StepsSession(built, fused_updates=False)


def test_safe_layers_train_the_same(opened: Opener) -> None:
    import tensorflow as tf

    workload = variant(without_dropout(small(workload_named("mnist-cnn"), 64)), optimizer=SGD())
    stock = losses(opened("tensorflow", workload, "tuned", 16), 3)
    session = safe_session(workload)
    assert losses(session, 3) == pytest.approx(stock, rel=1e-5)
    program = session._program.get_concrete_function(*(tf.constant(0),) * 3)
    text = str(program.graph.as_graph_def())  # with the bodies of its loops
    assert '"AddV2"' in text
    assert '"BiasAdd"' not in text


def test_the_unrolled_lstm_is_keras_lstm() -> None:
    import keras

    from bench_agent.engines.tensorflow import forward

    x = np.random.default_rng(0).normal(size=(8, 5, 3)).astype(np.float32)
    layer = keras.layers.LSTM(4, bias_initializer="random_normal")
    expected = layer(x)
    weights = (variable.value for variable in layer.weights)
    outputs = forward.unrolled_lstm(x, *weights)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer", [RMSprop(), Adam(), SGD()])
def test_fused_updates_equal_composed_ones(optimizer: Optimizer) -> None:
    """Adam's kernel takes 1 - beta from a float32 beta, which moves each update by 2e-5."""
    import tensorflow as tf

    from bench_agent.engines.tensorflow import update as tf_update

    draws = np.random.default_rng(1)
    gradients = [draws.standard_normal(1000).astype(np.float32) for _ in range(3)]
    moved = []
    for fused in (False, True):
        variable = tf.Variable(tf.zeros(1000))
        update = tf_update.update(optimizer, tf_update.state_of([variable]), fused=fused)
        for number, gradient in enumerate(gradients, 1):
            update([tf.constant(gradient)], tf.constant(float(number)))
        moved.append(variable.numpy())
    composed, fused_moved = moved
    assert np.abs(fused_moved - composed).max() < 2e-6 * np.abs(composed).max()


def test_dense_layers_cut_between_the_cores_train_as_whole_ones(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench_agent.engines.cpu import chains as cpu_chains
    from bench_agent.engines.tensorflow import units

    monkeypatch.setattr(cpu_chains, "available_cores", lambda: 2)
    workload = without_dropout(small(workload_named("fashion-mlp"), 64))
    runs = []
    for least, how in ((0, "by units"), (1_000_000, "whole")):
        monkeypatch.setattr(units, "LEAST_WEIGHTS", least)
        session = opened("tensorflow", workload, "tuned", 16)
        assert session.settings["first_dense_layer"] == how
        assert session.parameter_count() == workload.parameter_count
        # Evaluated between blocks and at the end: the weights must be the trained ones.
        runs.append([*losses(session, 3), *evaluated(session, workload), *losses(session, 3)])
        runs[-1].extend(evaluated(session, workload))
    assert runs[0] == pytest.approx(runs[1], rel=1e-4)


@pytest.mark.long  # smaller ones are cut in the same way
def test_large_layers_cut_between_the_cores_train_as_whole_ones(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench_agent.engines.cpu import chains as cpu_chains

    workload = variant(
        without_dropout(small(workload_named("cifar100-vgg16"), 32)), optimizer=SGD()
    )
    runs, moved = [], []
    for cores, how in ((2, "by units"), (1, "whole")):
        monkeypatch.setattr(cpu_chains, "available_cores", lambda cores=cores: cores)
        session = opened("tensorflow", workload, "tuned", 8)
        assert (session.settings["large_layers"], session.settings["chains"]) == (how, str(cores))
        assert session.parameter_count() == workload.parameter_count
        before = list(session.trained_parameters())
        runs.append([*losses(session, 3), *evaluated(session, workload), *losses(session, 3)])
        runs[-1].extend(evaluated(session, workload))
        after = list(session.trained_parameters())
        moved.append([new - old for new, old in zip(after, before, strict=True)])
        # Each step rounds a weight to float32.
        rounding = [2 * np.finfo(np.float32).eps * np.linalg.norm(weight) for weight in before]
    assert runs[0] == pytest.approx(runs[1], rel=1e-5)
    # The losses of an untrained deep model all lie near chance, so the weights are compared too.
    # Sums in another order differ by the CPU's kernels: up to 1.05e-3 for a bias on AVX2.
    for by_units, whole, rounded in zip(*moved, rounding, strict=True):
        assert np.linalg.norm(by_units - whole) < 5e-3 * np.linalg.norm(whole) + rounded
        assert np.linalg.norm(whole) == 0 or rounded < 0.1 * np.linalg.norm(whole)


def test_which_layers_are_cut() -> None:
    from bench_agent.engines.tensorflow import units

    pairs = {
        ("fashion-mlp", 2): (1, 3),
        ("fashion-mlp", 3): None,  # 512 units
        ("fashion-mlp", 1): None,
        ("mnist-dense", 2): (1, 2),
        **{(name, 2): None for name in ("fashion-cnn", "fashion-lstm", "resnet50-transfer")},
    }
    for (name, chains), pair in pairs.items():
        assert units.dense_pair(workload_named(name), chains) == pair
    for workload in CATALOGUE:
        large = [type(workload.layers[index]).__name__ for index in units.large_layers(workload)]
        vgg16 = workload.name == "cifar100-vgg16"
        assert large == (["Conv2D"] * 6 + ["Dense"] * 3 if vgg16 else [])


@pytest.mark.parametrize("rate", [0.2, 0.3, 0.5])
def test_dropout_by_sixteen_bits(rate: float) -> None:
    import tensorflow as tf

    from bench_agent.engines.tensorflow import dropout

    x = tf.ones((999, 1001))  # an odd number of values
    draws = []
    for step in (1, 2):
        drop = dropout.Dropout(tf.constant(step))
        draws.extend(drop(x, rate).numpy() for _ in range(2))
    again = dropout.Dropout(tf.constant(1))
    np.testing.assert_array_equal(again(x, rate), draws[0])
    five_sigma = 5 * np.sqrt(rate * (1 - rate) / draws[0].size)
    for drawn in draws:
        assert (drawn == 0).mean() == pytest.approx(rate, abs=five_sigma)
        assert np.unique(drawn) == pytest.approx([0, 1 / (1 - rate)], rel=1e-4)
        for pairs in (drawn[:, 1:] * drawn[:, :-1], drawn[1:] * drawn[:-1]):
            both = (pairs != 0).mean()
            assert both == pytest.approx((1 - rate) ** 2, abs=2 * five_sigma)
    for first_draw, second_draw in combinations(draws, 2):
        assert ((first_draw != 0) & (second_draw != 0)).mean() == pytest.approx(
            (1 - rate) ** 2, abs=2 * five_sigma
        )
