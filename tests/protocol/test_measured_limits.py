"""The file of measured limits, what is missing in it, and how its entries are made."""

import shutil
from pathlib import Path

import pytest
from benchmarks.limits.entry import write
from benchmarks.limits.learning_curves import Point
from tests.fakes.workloads import TINY, variant

from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.recompute import generated_digest
from bench_protocol.training import measured_limits
from bench_protocol.training.loss_by_steps import lowest_loss
from bench_protocol.training.measured_limits import NO_BAND, NO_CURVE, limits_of, not_measured

DIGESTS = {workload.name: workload.digest for workload in CATALOGUE}


def test_every_entry_is_of_todays_literal_and_sound() -> None:
    for name, entry in measured_limits.entries().items():
        assert entry.workload_digest == DIGESTS[name]
        for band in entry.bands:
            assert 0 < band.lowest < band.highest <= 1
            assert band.loss is None or 0.5 < band.loss[0] < band.loss[1] < 4
        assert len({band.data_digest for band in entry.bands}) == len(entry.bands)


@pytest.mark.parametrize("name", measured_limits.entries())
def test_a_band_is_of_the_data_that_is_generated_now(name: str) -> None:
    workload = workload_named(name)
    digests = {band.data_digest for band in limits_of(workload).bands if band.loss}
    wanted = set() if workload.data_set.noise else {generated_digest(workload.data_set)}
    assert digests == wanted


def test_what_is_missing_is_one_sentence_each() -> None:
    assert not_measured(workload_named("fashion-mlp")) == ()
    assert not_measured(workload_named("mnist-cnn")) == (NO_CURVE,)
    assert not_measured(TINY) == (NO_BAND, NO_CURVE)
    noise = TINY.data_set.model_copy(update={"noise": True})
    assert not_measured(variant(TINY, data_set=noise)) == ()


SESSIONS = [
    [Point(8, 1.4, 0.60), Point(16, 1.0, 0.80)],
    [Point(8, 1.6, 0.64), Point(16, 0.8, 0.84)],
]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copied = tmp_path / "measured_limits.json"
    shutil.copy(measured_limits.FILE, copied)
    monkeypatch.setattr(measured_limits, "FILE", copied)
    return copied


def test_an_entry_follows_from_the_curves_of_its_sessions(file: Path) -> None:
    before = file.read_text("utf-8")
    write(TINY, SESSIONS, "2026-11-26", "the command")
    entry = limits_of(TINY)
    assert entry.curve is not None
    assert entry.curve.points == ((8, 1.5), (16, 0.9))
    (band,) = entry.bands
    assert band.data_digest == generated_digest(TINY.data_set)
    assert band.lowest == pytest.approx(0.82 - 0.4 * (0.82 - 0.62))
    assert band.highest > 1 - 1 / 8
    assert band.loss == (round(lowest_loss(10) - 0.05, 2), pytest.approx(0.9 + 0.4 * 0.6))
    assert "2026-11-26, n = 2" in band.source
    assert file.read_text("utf-8").startswith(before.rstrip("}\n"))
    measured_limits.entries.cache_clear()


def test_a_new_entry_keeps_bands_of_real_data(file: Path) -> None:
    workload = workload_named("fashion-mlp")
    real, generated = limits_of(workload).bands
    write(workload, SESSIONS, "2026-11-26", "the command")
    assert limits_of(workload).bands[0] == real
    assert limits_of(workload).bands[1].data_digest == generated.data_digest
    curve = limits_of(workload).curve
    assert curve is not None
    assert curve.points == ((8, 1.5), (16, 0.9))
    measured_limits.entries.cache_clear()
