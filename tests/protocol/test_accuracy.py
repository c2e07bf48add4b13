"""Accuracy bands: within, outside, and unchecked."""

from typing import Any

import pytest
from tests.fakes.results import make_result
from tests.fakes.workloads import variant

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.result import Evaluation, Measurement
from bench_protocol.training.accuracy import judge
from bench_protocol.training.measured_limits import limits_of

MLP = workload_named("fashion-mlp")
REAL, GENERATED = limits_of(MLP).bands


def measured(
    accuracy: float | None, digest: str | None = REAL.data_digest, **changes: Any
) -> Measurement:
    measurement = make_result().measurement
    assert measurement is not None
    evaluation = None
    if accuracy is not None:
        fields = {"epochs": MLP.epochs, "samples": 10_000, "loss": 0.3, "accuracy": accuracy}
        evaluation = Evaluation(**(fields | changes))
    return measurement.model_copy(update={"evaluation": evaluation, "data_digest": digest})


@pytest.mark.parametrize(
    ("accuracy", "verdict"),
    [
        (0.80, "within"),
        (0.92, "within"),
        (0.7999, "diverged"),
        (0.9201, "diverged"),
        (0.1, "diverged"),
    ],
)
def test_a_band_has_two_ends(accuracy: float, verdict: str) -> None:
    judged = judge(MLP, measured(accuracy), 1024)
    assert judged.verdict == verdict
    assert f"80.0 % to 92.0 % ({REAL.source})" in judged.sentence


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (measured(None), "not evaluated"),
        (measured(0.1, epochs=2), "10 epochs"),
        (measured(0.1, digest="e" * 64), "no accuracy band was measured for these data"),
        (measured(0.1, digest=None), "no accuracy band was measured for these data"),
    ],
)
def test_without_a_band_nothing_is_said(other: Measurement, why: str) -> None:
    judged = judge(MLP, other, MLP.batch_size)
    assert judged.verdict == "accuracy_unchecked"
    assert why in judged.sentence


def test_a_changed_literal_has_no_band() -> None:
    judged = judge(variant(MLP, batch_size=64), measured(0.85), 64)
    assert judged.verdict == "accuracy_unchecked"
    assert "no accuracy band was measured for this workload" in judged.sentence


@pytest.mark.parametrize(
    ("accuracy", "loss", "batch_size", "verdict", "why"),
    [
        (0.85, 0.85, 128, "within", "the loss 0.85 lies within 0.55 to 0.875"),
        (0.80, 0.85, 128, "diverged", "outside 82.8 % to 90.4 %"),
        (0.95, 0.85, 128, "diverged", "outside 82.8 % to 90.4 %"),
        (0.85, 0.95, 128, "diverged", "the loss 0.95 lies outside"),
        (0.85, 0.1, 128, "diverged", "the loss 0.1 lies outside"),
        (0.85, None, 128, "diverged", "the loss not finite lies outside"),
        (0.10, 0.85, 1024, "accuracy_unchecked", "is for batch 128"),
        (0.10, 0.85, 32, "accuracy_unchecked", "is for batch 128"),
    ],
)
def test_a_band_of_generated_data_is_of_the_loss_too_and_of_one_batch_size(
    accuracy: float, loss: float | None, batch_size: int, verdict: str, why: str
) -> None:
    judged = judge(MLP, measured(accuracy, GENERATED.data_digest, loss=loss), batch_size)
    assert judged.verdict == verdict
    assert why in judged.sentence
