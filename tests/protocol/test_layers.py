"""Layers, workloads and the catalogue: shapes, weights, FLOPs, identity."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from bench_protocol.base import strict_json
from bench_protocol.base.errors import UnknownWorkload
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.layers import (
    LSTM,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    Layer,
    MaxPool2D,
    Shape,
)
from bench_protocol.catalogue.workloads import SGD, Adam, DataSet, RMSprop, Workload


def tiny(**overrides: Any) -> Workload:
    fields: dict[str, Any] = {
        "name": "tiny",
        "data_set": DataSet(
            name="dots", sample_shape=(5, 5, 2), classes=3, train_samples=10, test_samples=4
        ),
        "layers": (
            Conv2D(filters=4, kernel=2, padding="valid"),
            MaxPool2D(),
            Flatten(),
            Dense(units=3, activation="linear"),
        ),
        "optimizer": Adam(),
        "batch_size": 2,
        "epochs": 1,
    }
    return Workload(**fields | overrides)


@pytest.mark.parametrize(
    ("layer", "inputs", "output"),
    [
        (Conv2D(filters=32, kernel=3, padding="valid"), (28, 28, 1), (26, 26, 32)),
        (Conv2D(filters=32, kernel=3, padding="same"), (28, 28, 1), (28, 28, 32)),
        (Conv2D(filters=8, kernel=2, padding="same"), (7, 9, 3), (7, 9, 8)),
        (Conv2D(filters=8, kernel=3, padding="valid", stride=2), (28, 28, 1), (13, 13, 8)),
        (Conv2D(filters=8, kernel=3, padding="valid", stride=2), (29, 28, 1), (14, 13, 8)),
        (Conv2D(filters=8, kernel=7, padding="same", stride=2), (224, 224, 3), (112, 112, 8)),
        (Conv2D(filters=8, kernel=3, padding="same", stride=2), (7, 7, 3), (4, 4, 8)),
        (Conv2D(filters=8, kernel=5, padding="valid"), (5, 5, 3), (1, 1, 8)),
        (MaxPool2D(), (26, 26, 32), (13, 13, 32)),
        (MaxPool2D(), (11, 10, 4), (5, 5, 4)),
        (MaxPool2D(size=3, stride=2), (7, 8, 1), (3, 3, 1)),
        (Flatten(), (3, 3, 64), (576,)),
        (Dropout(rate=0.5), (3, 4), (3, 4)),
        (Dense(units=10), (64,), (10,)),
        (LSTM(units=128), (28, 28), (128,)),
    ],
)
def test_output_shape(layer: Layer, inputs: Shape, output: Shape) -> None:
    assert layer.output_shape(inputs) == output


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Conv2D, {"filters": 0, "kernel": 3, "padding": "same"}),
        (Conv2D, {"filters": 1, "kernel": 3, "padding": "full"}),
        (Conv2D, {"filters": True, "kernel": 3, "padding": "same"}),
        (Dense, {"units": 1.0}),
        (Dense, {"units": 4, "activation": "tanh"}),
        (Dense, {"units": 4, "bias": 0.5}),
        (Dropout, {"rate": 0.0}),
        (Dropout, {"rate": 1.0}),
        (LSTM, {"units": -1}),
        *((Adam, {"learning_rate": rate}) for rate in (0.0, -1e-3, math.inf, math.nan)),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(kind: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        kind(**fields)


def test_flops_of_a_tiny_network_by_hand() -> None:
    workload = tiny()
    assert workload.shapes == ((5, 5, 2), (4, 4, 4), (2, 2, 4), (16,), (3,))
    assert workload.parameter_count == (2 * 2 * 2 * 4 + 4) + (16 * 3 + 3) == 87
    convolution = 2 * (4 * 4) * (2 * 2 * 2) * 4  # positions x products x filters, two FLOPs each
    dense = 2 * 16 * 3
    # The first layer's input needs no gradient: twice the forward pass, thrice for the others.
    assert workload.training_flops_per_sample == 2 * convolution + 3 * dense == 2_336


def test_frozen_layers_only_run_forward() -> None:
    workload = tiny(frozen_layers=1)
    convolution, dense = 2 * 16 * 8 * 4, 2 * 16 * 3
    # The dense layer is now the first that is trained.
    assert workload.training_flops_per_sample == convolution + 2 * dense
    assert workload.parameter_count == 87


def test_flops_of_an_lstm_by_hand() -> None:
    workload = tiny(
        data_set=DataSet(
            name="rows", sample_shape=(5, 2), classes=3, train_samples=10, test_samples=4
        ),
        layers=(LSTM(units=4), Dense(units=3, activation="linear")),
    )
    from_input, from_state = 2 * 5 * 2 * 16, 2 * 5 * 4 * 16
    dense = 2 * 4 * 3
    # Only the gradient of the input is left out; the state needs its own.
    assert workload.training_flops_per_sample == 2 * from_input + 3 * from_state + 3 * dense


@pytest.mark.parametrize(
    ("layer", "shape", "zeros"),
    [
        (Conv2D(filters=1, kernel=3, padding="valid"), (9, 9, 1), ((0, 0), (0, 0))),
        (Conv2D(filters=1, kernel=3, padding="same"), (9, 8, 1), ((1, 1), (1, 1))),
        (Conv2D(filters=1, kernel=2, padding="same"), (9, 8, 1), ((0, 1), (0, 1))),
        (Conv2D(filters=1, kernel=3, padding="same", stride=2), (8, 7, 1), ((0, 1), (1, 1))),
    ],
)
def test_padding_puts_the_odd_zeros_last(
    layer: Conv2D, shape: Shape, zeros: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    assert layer.padding_zeros(shape) == zeros


def test_an_unknown_workload_names_the_known_ones() -> None:
    with pytest.raises(UnknownWorkload) as caught:
        workload_named("mnist-cnn2")
    assert caught.value.field == "workload"
    assert "fashion-mlp" in caught.value.hint


def test_the_digest_is_that_of_the_canonical_definition() -> None:
    workload = tiny()
    definition = strict_json.loads(workload.model_dump_json().encode())
    assert workload.digest == strict_json.digest(definition)
    assert Workload.model_validate_json(strict_json.dumps(definition)).digest == workload.digest
    guided = tiny(batch_sizes=(1, 2), summary="three dots")  # which only guides people
    assert guided.digest == workload.digest


DATA_SET = {
    "name": "spots",
    "sample_shape": (5, 5, 1),
    "classes": 4,
    "train_samples": 9,
    "validation_samples": 1,
    "patterns": 10,
}
OPTIMIZERS = (
    *(RMSprop(), SGD(), Adam(learning_rate=1e-4)),
    *(Adam(beta_1=0.8), Adam(beta_2=0.99), Adam(epsilon=1e-3)),
)
IDENTITY: list[tuple[str, Any]] = [
    ("name", "tiny2"),
    *(("data_set", tiny().data_set.model_copy(update={n: value})) for n, value in DATA_SET.items()),
    ("layers", (*tiny().layers[:2], Flatten(), Dropout(rate=0.5), *tiny().layers[3:])),
    ("frozen_layers", 1),
    *(("optimizer", other) for other in OPTIMIZERS),
    ("batch_size", 3),
    ("epochs", 2),
]


@pytest.mark.parametrize(("field", "value"), IDENTITY)
def test_every_part_of_the_identity_changes_the_digest(field: str, value: Any) -> None:
    assert tiny(**{field: value}).digest != tiny().digest


def test_the_list_of_identity_fields_is_complete() -> None:
    # `loss` has one value so far.
    guides = {"batch_sizes", "summary", "loss"}
    assert set(Workload.model_fields) == {field for field, _ in IDENTITY} | guides


def test_a_changed_copy_forgets_what_was_cached() -> None:
    workload = tiny()
    before = (workload.digest, workload.shapes, workload.parameter_count)
    copied = workload.model_copy(update={"layers": (Flatten(), Dense(units=3))})
    assert copied.digest != before[0]
    assert (copied.shapes, copied.parameter_count) == (((5, 5, 2), (50,), (3,)), 153)
    assert (workload.digest, workload.shapes, workload.parameter_count) == before


@pytest.mark.parametrize(("batch_size", "steps"), [(1, 10), (3, 3), (10, 1), (11, 0)])
def test_the_last_short_batch_is_dropped(batch_size: int, steps: int) -> None:
    assert tiny().steps_per_epoch(batch_size) == steps
