"""Pretrained ResNet50: a file in Keras' published form gives the features of Keras' own model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fakes.workloads import variant

from bench_agent.base.errors import UsageProblem
from bench_agent.worker import pretrained
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named

WORKLOAD = workload_named("resnet50-transfer")


@pytest.fixture(scope="module")
def model() -> Any:
    import keras

    keras.utils.set_random_seed(3)
    model = keras.applications.ResNet50(weights=None, include_top=False, pooling="avg")
    draws = np.random.default_rng(3)
    for layer in model.layers:
        if layer.get_weights():
            layer.set_weights(
                [
                    value
                    if value.ndim > 1
                    else (1 + 0.1 * draws.standard_normal(value.shape)).astype(np.float32)
                    for value in layer.get_weights()
                ]
            )
    return model


@pytest.fixture(scope="module")
def weights_file(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import h5py

    path = tmp_path_factory.mktemp("weights") / "resnet50.h5"
    with h5py.File(path, "w") as file:
        for layer in model.layers:
            group = file.create_group(layer.name)
            names = [f"{layer.name}/{weight.name}:0" for weight in layer.weights]
            group.attrs["weight_names"] = [name.encode() for name in names]
            for name, value in zip(names, layer.get_weights(), strict=True):
                group[name] = value
    return path


@pytest.mark.engine
def test_the_catalogues_resnet_is_keras_own(model: Any, weights_file: Path) -> None:
    from bench_agent.engines.tensorflow import keras_model

    generated = seeded.initial_weights(WORKLOAD)
    weights, source = pretrained.with_pretrained(WORKLOAD, generated, weights_file)
    assert source.startswith("sha256:")
    assert len(source) == 7 + 64
    features = variant(WORKLOAD, layers=WORKLOAD.layers[:-1])
    ours = keras_model.build(features, weights[:-1])
    pictures = np.random.default_rng(5).random((2, 224, 224, 3), np.float32)
    right = np.asarray(model(pictures, training=False))
    np.testing.assert_allclose(np.asarray(ours(pictures)), right, rtol=2e-4, atol=1e-5)
    # The new last layer is the generated one.
    np.testing.assert_array_equal(weights[-1]["kernel"], generated[-1]["kernel"])


def test_without_a_file_weights_stay() -> None:
    weights = seeded.initial_weights(workload_named("mnist-dense"))
    assert pretrained.with_pretrained(WORKLOAD, weights, None) == (weights, "generated")


@pytest.mark.engine
def test_files_that_do_not_fit(tmp_path: Path, weights_file: Path) -> None:
    weights = seeded.initial_weights(WORKLOAD)
    text = tmp_path / "weights.h5"
    text.write_text("nonsense")
    with pytest.raises(UsageProblem, match="no weights file"):
        pretrained.with_pretrained(WORKLOAD, weights, text)
    import h5py

    other = tmp_path / "other.h5"
    other.write_bytes(weights_file.read_bytes())
    with h5py.File(other, "a") as file:
        del file["conv3_block2_1_conv"]
    with pytest.raises(UsageProblem, match=r"conv3_block2_1_conv should hold .* nothing"):
        pretrained.with_pretrained(WORKLOAD, weights, other)


def test_a_name_that_is_no_file(tmp_path: Path) -> None:
    assert pretrained.chosen_file({}) is None
    assert pretrained.chosen_file({"BENCH_PRETRAINED": ""}) is None
    with pytest.raises(UsageProblem, match="BENCH_PRETRAINED names"):
        pretrained.chosen_file({"BENCH_PRETRAINED": str(tmp_path / "none.h5")})
