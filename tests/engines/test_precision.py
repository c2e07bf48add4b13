"""Mixed precision in every engine and recipe: half precision in layers, float32 in the state.

float16 is no cell on a CPU, but its code runs there, so its loss scale can be tested.
"""

from collections.abc import Mapping

import pytest
from tests.fakes.workloads import small, variant

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import Precision
from bench_protocol.catalogue.workloads import SGD

from .conftest import Opener, evaluated, losses, without_dropout
from .loops import MODELS, every_model, every_pair_with

BATCH = 16
WORKLOADS = {
    workload.name: without_dropout(small(workload, 10 * BATCH))
    for workload in CATALOGUE
    if workload.name in ("mnist-cnn", "fashion-mlp", "fashion-lstm")
}
# Half a unit in the last place of bfloat16 is 2**-9; five steps add up several.
BFLOAT16_TOLERANCE = 2e-2
FLOAT16_TOLERANCE = 3e-3


def must_be_float32_but_for_rounding(
    opened: Opener, framework: str, recipe: str, name: str, precision: Precision, tolerance: float
) -> Mapping[str, str]:
    """Compare the losses of five steps with those of float32; return the recipe's settings."""
    workload = variant(WORKLOADS[name], optimizer=SGD())
    right = losses(opened(framework, workload, recipe, BATCH), 5)
    session = opened(framework, workload, recipe, BATCH, precision)
    half = losses(session, 5)
    assert half == pytest.approx(right, rel=tolerance)
    assert half != pytest.approx(right, rel=1e-6), "nothing was computed in half precision"
    return session.settings


@every_pair_with(WORKLOADS, MODELS)
def test_the_losses_in_bfloat16(opened: Opener, framework: str, recipe: str, name: str) -> None:
    must_be_float32_but_for_rounding(
        opened, framework, recipe, name, "mixed_bfloat16", BFLOAT16_TOLERANCE
    )


@every_model
def test_the_losses_in_float16(opened: Opener, framework: str, recipe: str) -> None:
    settings = must_be_float32_but_for_rounding(
        opened, framework, recipe, "fashion-mlp", "mixed_float16", FLOAT16_TOLERANCE
    )
    assert settings["loss_scale"] in ("1024", "dynamic")


@every_model
def test_updates_too_small_for_a_half_add_up_in_the_float32_weights(
    opened: Opener, framework: str, recipe: str
) -> None:
    """Weights of about 0.05 change by 1e-5 a step: a bfloat16 would round that away."""
    workload = variant(WORKLOADS["fashion-mlp"], optimizer=SGD(learning_rate=1e-3, momentum=0))
    drops, first = [], []
    for precision in ("float32", "mixed_bfloat16"):
        session = opened(framework, workload, recipe, BATCH, precision)
        before, _ = evaluated(session, workload)
        first.append(before)
        session.train_block(100)
        session.sync()
        after, _ = evaluated(session, workload)
        drops.append(before - after)
    assert first[1] != pytest.approx(first[0], rel=1e-5)
    assert drops[0] > 0.05
    assert drops[1] == pytest.approx(drops[0], rel=0.1)
