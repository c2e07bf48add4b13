"""Accuracy bands: within, outside, and unchecked."""

from typing import Any

import pytest
from tests.fakes.results import make_result

from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.seeded import data_digest, generated_data
from bench_protocol.payload.result import Evaluation, Measurement
from bench_protocol.training.accuracy import BANDS, Band, judge

MLP = workload_named("fashion-mlp")
DIGEST = "d" * 64
KNOWN = (Band(MLP.name, DIGEST, 0.85, 0.90, "someone, 2026"),)


def measured(accuracy: float | None, digest: str | None = DIGEST, **changes: Any) -> Measurement:
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
        (0.85, "within"),
        (0.90, "within"),
        (0.8499, "diverged"),
        (0.9001, "diverged"),
        (0.1, "diverged"),
    ],
)
def test_a_band_has_two_ends(accuracy: float, verdict: str) -> None:
    judged = judge(MLP, measured(accuracy), KNOWN)
    assert judged.verdict == verdict
    assert "someone, 2026" in judged.sentence
    assert "85.0 % to 90.0 %" in judged.sentence


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (measured(None), "not evaluated"),
        (measured(0.1, epochs=2), "10 epochs"),
        (measured(0.1, digest="e" * 64), "no band"),
        (measured(0.1, digest=None), "no band"),
    ],
)
def test_without_a_band_nothing_is_said(other: Measurement, why: str) -> None:
    judged = judge(MLP, other, KNOWN)
    assert judged.verdict == "accuracy_unchecked"
    assert why in judged.sentence


def generated(accuracy: float, loss: float | None = 0.85, batch_size: int = 128) -> Measurement:
    """After all epochs on generated data; the last steps fill no block, so they are not timed."""
    steps = MLP.epochs * MLP.steps_per_epoch(batch_size)
    blocks = {
        "steps_per_block": 7,
        "durations_ns": (10**6,) * (steps // 7),
        "stop_reason": "epochs",
    }
    found = measured(accuracy, loss=loss)
    return found.model_copy(update={"blocks": found.blocks.model_copy(update=blocks)})


HARD = (Band(MLP.name, DIGEST, 0.82, 0.90, "someone, 2026", loss=(0.55, 0.90)),)


@pytest.mark.parametrize(
    ("found", "verdict", "why"),
    [
        (generated(0.85), "within", "the loss 0.85 lies within 0.55 to 0.9"),
        (generated(0.80), "diverged", "outside 82.0 % to 90.0 %"),
        (generated(0.95), "diverged", "outside 82.0 % to 90.0 %"),
        (generated(0.85, loss=0.95), "diverged", "the loss 0.95 lies outside"),
        (generated(0.85, loss=0.1), "diverged", "the loss 0.1 lies outside"),
        (generated(0.85, loss=None), "diverged", "the loss not finite lies outside"),
        (generated(0.10, batch_size=1024), "accuracy_unchecked", "is for batch 128"),
        (generated(0.10, batch_size=32), "accuracy_unchecked", "is for batch 128"),
    ],
)
def test_a_band_of_generated_data_is_of_the_loss_too_and_of_one_batch_size(
    found: Measurement, verdict: str, why: str
) -> None:
    judged = judge(MLP, found, HARD)
    assert judged.verdict == verdict
    assert why in judged.sentence


def test_the_cells_batch_size_decides_where_it_is_given() -> None:
    found = generated(0.10)
    assert judge(MLP, found, HARD, batch_size=128).verdict == "diverged"
    assert judge(MLP, found, HARD, batch_size=64).verdict == "accuracy_unchecked"


def test_bands_of_generated_data_are_keyed_by_what_is_generated_now() -> None:
    band_keys = {(band.workload, band.data_digest) for band in BANDS}
    names = [workload.name for workload in CATALOGUE if not workload.data_set.noise]
    for name in names:
        data_set = workload_named(name).data_set
        splits = (
            ("train", "validation", "test") if data_set.validation_samples else ("train", "test")
        )
        assert (
            name,
            data_digest(*(generated_data(data_set, split) for split in splits)),
        ) in band_keys


def test_every_band_is_sound_and_says_where_it_is_from() -> None:
    for band in BANDS:
        assert 0 < band.lowest < band.highest <= 1
        assert band.source
        assert band.loss is None or 0.5 < band.loss[0] < band.loss[1] < 4
    assert len({(band.workload, band.data_digest) for band in BANDS}) == len(BANDS)
    assert {band.workload for band in BANDS} >= {
        w.name for w in CATALOGUE if w.name in ("mnist-cnn", "fashion-lstm")
    }
