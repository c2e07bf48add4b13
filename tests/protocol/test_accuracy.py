"""Accuracy bands: within, outside, and unchecked."""

from typing import Any

import pytest
from tests.fakes.results import make_result

from bench_protocol.accuracy import BANDS, Band, judge
from bench_protocol.catalogue import CATALOGUE, workload_named
from bench_protocol.matrix import DataKind
from bench_protocol.result import Evaluation, Measurement
from bench_protocol.seeded import data_digest, generated_data

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
    judged = judge(MLP, "real", measured(accuracy), KNOWN)
    assert judged.verdict == verdict
    assert "someone, 2026" in judged.sentence
    assert "85.0 % to 90.0 %" in judged.sentence


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (measured(None), "not evaluated"),
        (measured(0.1, epochs=2), "10 epochs"),
        (measured(0.1, split="validation"), "test split"),
        (measured(0.1, digest="e" * 64), "no band"),
        (measured(0.1, digest=None), "no band"),
    ],
)
def test_without_a_band_nothing_is_said(other: Measurement, why: str) -> None:
    judged = judge(MLP, "real", other, KNOWN)
    assert judged.verdict == "accuracy_unchecked"
    assert why in judged.sentence


@pytest.mark.parametrize(
    ("kind", "verdict"), [("real", "diverged"), ("generated", "accuracy_unchecked")]
)
def test_where_no_digest_is_known_the_label_real_has_to_do(kind: DataKind, verdict: str) -> None:
    unknown = (Band(MLP.name, None, 0.85, 0.90, "someone"),)
    assert judge(MLP, kind, measured(0.1), unknown).verdict == verdict


def test_bands_of_generated_data_are_keyed_by_what_is_generated_now() -> None:
    band_keys = {(band.workload, band.data_digest) for band in BANDS}
    for name in ("mnist-cnn", "fashion-mlp", "fashion-lstm"):
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
    assert len({(band.workload, band.data_digest) for band in BANDS}) == len(BANDS)
    assert {band.workload for band in BANDS} >= {
        w.name for w in CATALOGUE if w.name in ("mnist-cnn", "fashion-lstm")
    }
