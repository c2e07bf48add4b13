"""Stored references of witnesses and long traces: complete, and what is recomputed."""

import gzip
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.limits import witness_references as tool
from pydantic import TypeAdapter
from tests.fakes import results
from tests.fakes.results import make_cell, make_result, stored_reference

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.matrix import Device
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Trace
from bench_protocol.payload.witness import trained_tensors
from bench_protocol.recompute import (
    long_trace_job,
    recompute,
    timed_job,
    trace_job,
    witness_band,
)
from bench_protocol.training import conformance, long_trace, witness_references
from bench_protocol.training.long_trace import LongVerdict, judge
from bench_protocol.training.witness_references import WitnessReference
from bench_protocol.training.witness_steps import witness_steps

every_workload = pytest.mark.parametrize("workload", CATALOGUE, ids=lambda one: one.name)
LONG = [workload for workload in CATALOGUE if conformance.is_long_traced(workload)]
# Sums of another processor differ in their last digits, which many steps amplify.
CLOSE = 1e-6
FIRST_STEPS = 4
# Data sets whose published samples we had.
REAL = ("mnist", "fashion-mnist")
QUICK = ("mnist-dense", "fashion-mlp")
AGAIN = "run: python -m benchmarks.limits.witness_references"


@every_workload
def test_every_planned_cell_has_its_reference(workload: Workload) -> None:
    for batch_size in witness_references.batch_sizes(workload):
        stored = stored_reference(make_cell(workload.name, batch_size=batch_size))
        assert stored is not None, AGAIN
        assert stored.steps == witness_steps(workload, batch_size), AGAIN
        assert len(stored.low) == stored.steps[-1]
        dropped = any(isinstance(layer, Dropout) for layer in workload.layers)
        assert bool(stored.high) is dropped
        pairs = zip(stored.low, stored.band.high.losses, strict=True)
        assert all(0 < low <= high for low, high in pairs)


def test_no_other_reference_is_stored() -> None:
    cells = {
        (workload.digest, size, data)
        for workload in CATALOGUE
        for size in witness_references.batch_sizes(workload)
        for data in ("generated", "real")
        if data == "generated" or workload.data_set.name in REAL
    }
    stored = witness_references.references()
    found = {(one.workload_digest, one.batch_size, one.data) for one in stored.values()}
    assert found == cells, AGAIN
    assert len(stored) == len(cells)
    assert {key.seed for key in stored} == {seeded.DEFAULT_SEED}
    assert set(long_trace.references()) == {workload.digest for workload in LONG}, AGAIN


@pytest.mark.parametrize("name", ["mnist-dense", "fashion-mlp"])
def test_the_stored_witness_is_what_is_recomputed(name: str) -> None:
    """The first steps of the cheapest cell without Dropout, and of the cheapest with it."""
    workload = workload_named(name)
    batch_size = min(witness_references.batch_sizes(workload))
    stored = stored_reference(make_cell(name, batch_size=batch_size))
    assert stored is not None
    assert stored.data_digest == seeded.data_digest(*tool.splits(workload, None)), AGAIN
    band = witness_band(timed_job(workload, batch_size, seeded.DEFAULT_SEED), FIRST_STEPS)
    assert stored.low[:FIRST_STEPS] == pytest.approx(band.low.losses, rel=CLOSE), AGAIN
    high = stored.band.high.losses[:FIRST_STEPS]
    assert high == pytest.approx(band.high.losses, rel=CLOSE), AGAIN


@pytest.mark.long
@every_workload
def test_every_stored_witness_is_what_is_recomputed(workload: Workload) -> None:
    for made in tool.witnesses(workload, "generated", tool.splits(workload, None)):
        stored = witness_references.references()[made.key]
        assert stored.steps == made.steps
        assert stored.low == pytest.approx(made.low, rel=CLOSE), AGAIN
        assert stored.high == pytest.approx(made.high, rel=CLOSE), AGAIN


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(one, id=one.name, marks=() if one.name in QUICK else pytest.mark.long)
        for one in LONG
    ],
)
def test_the_stored_long_trace_is_what_is_recomputed(workload: Workload) -> None:
    made, stored = tool.long_reference(workload), long_trace.references()[workload.digest]
    assert (stored.batch_size, stored.seed) == (made.batch_size, made.seed), AGAIN
    assert stored.steps == made.steps, AGAIN
    assert stored.losses == pytest.approx(made.losses, rel=CLOSE), AGAIN
    assert stored.movements == pytest.approx(made.movements, rel=CLOSE), AGAIN


def test_the_second_epoch_of_a_trace_has_an_order_of_its_own() -> None:
    """After the 20 batches of ``order/0`` come those of ``order/1``."""
    workload = workload_named("mnist-dense")
    job = long_trace_job(workload, seeded.DEFAULT_SEED)
    losses = recompute(job, 21).losses
    assert losses[:20] == recompute(job, 20).losses
    with pytest.MonkeyPatch.context() as patch:
        order = seeded.order
        patch.setattr(seeded, "order", lambda samples, epoch, seed: order(samples, 0, seed))
        assert recompute(job, 21).losses[20] != losses[20]
    with pytest.raises(ValueError, match="0 steps"):
        recompute(trace_job(workload, "sgd", seeded.DEFAULT_SEED), 0)


def test_the_files_are_made_again_by_one_command(tmp_path: Path) -> None:
    """For one workload; the others' lines, and those of real data, stay as they are."""
    assert tool.main(["mnist-dense"], tmp_path) == 0
    for name in (witness_references.FILE, long_trace.FILE):
        stored = Path(conformance.__file__).with_name(name).read_text("utf-8").splitlines()
        made = (tmp_path / name).read_text("utf-8").splitlines()
        assert len(made) == len(stored)
        assert sum(a != b for a, b in zip(made, stored, strict=True)) <= 1


@pytest.mark.parametrize(
    "changes",
    [
        {"data_digest": None},
        {"data_digest": "e" * 64},
        {"recipe_settings": {"frozen_weights": "sha256:" + "0" * 64}},
    ],
)
def test_another_job_has_no_reference(changes: dict[str, Any]) -> None:
    """Real data and other frozen weights train something else."""
    result = make_result(cell=make_cell("resnet50-transfer"), witness=True)
    assert witness_references.reference_of(result) is not None
    assert witness_references.reference_of(result.model_copy(update={"seed": "1" * 32})) is None
    assert result.measurement is not None
    other = result.measurement.model_copy(update=changes)
    outcome = result.outcome.model_copy(update={"measurement": other})
    other_result = result.model_copy(update={"outcome": outcome})
    assert witness_references.reference_of(other_result) is None


def long_verdict(
    name: str,
    loss: float = 0.0,
    movement: float = 0.0,
    cell: dict[str, Any] | None = None,
    architecture: str = "x86_64",
    **changes: Any,
) -> LongVerdict:
    """The verdict on a reference whose last loss and movement are off by relative deviations."""
    workload = workload_named(name)
    made = make_cell(name, **(cell or {}))
    *short, trace = results.make_traces(make_cell(name))
    losses = (*trace.losses[:-1], (trace.losses[-1] or 0) * (1 + loss))
    moved = (*trace.movements[:-1], (trace.movements[-1] or 0) * (1 + movement))
    changed = trace.model_copy(update={"losses": losses, "movements": moved, **changes})
    return judge(made, workload, [*short, changed], architecture)


@pytest.mark.parametrize(
    ("name", "loss", "movement", "kind"),
    [
        ("mnist-dense", 0, 0, "conformant"),
        ("mnist-dense", 8e-5, 1.5e-4, "conformant"),
        ("mnist-dense", 2e-4, 0, "wrong_result"),
        ("mnist-dense", 0, 3e-4, "wrong_result"),
        ("mnist-cnn", 1.5e-3, 8e-3, "conformant"),
        ("mnist-cnn", 5e-3, 0, "wrong_result"),
        ("mnist-cnn", 0, 5e-2, "wrong_result"),
    ],
)
def test_a_long_trace_is_compared(name: str, loss: float, movement: float, kind: str) -> None:
    assert long_verdict(name, loss, movement).kind == kind


def test_an_equal_long_trace_agrees_exactly() -> None:
    sentence = long_verdict("mnist-dense").sentence
    assert sentence == "the long trace agrees exactly with its reference"
    assert "off by 8e-05 in losses" in long_verdict("mnist-dense", 8e-5).sentence


def test_a_long_trace_that_was_not_measured_has_the_witness_limits() -> None:
    on_gpu = {"device": Device(kind="cuda")}
    assert long_verdict("mnist-dense", 1e-4, cell=on_gpu).kind == "conformant"
    verdict = long_verdict("mnist-dense", 1e-2, cell=on_gpu)
    assert verdict.kind == "wrong_result"
    assert "not measured" in verdict.sentence


@pytest.mark.parametrize(
    ("loss", "kind"), [(8e-5, "conformant"), (3e-4, "unverified"), (6e-4, "wrong_result")]
)
def test_a_long_trace_on_arm64_is_unverified_before_it_is_wrong(loss: float, kind: str) -> None:
    verdict = long_verdict("mnist-dense", loss, architecture="arm64")
    assert verdict.kind == kind
    assert ("not measured on arm64" in verdict.sentence) == (kind == "unverified")


def test_a_long_trace_without_a_value_is_wrong() -> None:
    assert long_verdict("mnist-dense", losses=(2.0, None, 1.0)).kind == "wrong_result"
    movements = (None,) * len(list(trained_tensors(workload_named("mnist-dense"))))
    assert long_verdict("mnist-dense", movements=movements).kind == "wrong_result"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seed": "f" * 32}, "another job"),
        ({"batch_size": 7}, "another job"),
        ({"optimizer": "workload"}, "another job"),
        ({"steps": (1, 2, 3)}, "another job"),
        ({"movements": ()}, "not every tensor"),
        ({"steps": ()}, "no long trace"),
    ],
)
def test_a_long_trace_of_another_job_says_nothing(changes: dict[str, Any], says: str) -> None:
    verdict = long_verdict("mnist-dense", **changes)
    assert verdict.kind == "unverified"
    assert says in verdict.sentence


def test_a_workload_without_a_long_reference_says_nothing() -> None:
    trace = Trace(optimizer="sgd", batch_size=16, seed="0" * 32, losses=(1.0,), steps=(1,))
    verdict = judge(make_cell("cifar100-vgg16"), workload_named("cifar100-vgg16"), [trace])
    assert verdict.kind == "unverified"


def test_references_of_real_data_come_from_its_files(tmp_path: Path) -> None:
    """The four files in the IDX format, here with invented samples of the same shape."""
    names = (pictures, labels) = ("images-idx3", "labels-idx1")
    for part, count in (("train", 60_000), ("t10k", 10_000)):
        content = {
            pictures: np.random.default_rng(1).integers(0, 256, (count, 28, 28), np.uint8),
            labels: np.arange(count, dtype=np.uint8) % 10,
        }
        for name in names:
            array = content[name]
            head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
            packed = gzip.compress(head + array.tobytes(), 1)
            (tmp_path / f"{part}-{name}-ubyte.gz").write_bytes(packed)
    assert tool.main(["--idx", str(tmp_path), "mnist-dense"], tmp_path) == 0
    made = (tmp_path / witness_references.FILE).read_text("utf-8")
    before = witness_references.references().values()
    stored = TypeAdapter(list[WitnessReference]).validate_json(made)
    assert len(stored) == len(before)
    changed = set(stored) - set(before)
    assert {(one.workload, one.data) for one in changed} == {("mnist-dense", "real")}
    assert len(changed) == len(witness_references.batch_sizes(workload_named("mnist-dense")))
    with pytest.raises(SystemExit):
        tool.main(["--idx", str(tmp_path)], tmp_path)


def test_the_middle_of_every_reference_lies_in_the_wide_band() -> None:
    """With a margin: data that was not at hand may differ more."""
    for stored in witness_references.references().values():
        wide = witness_references.wide_band(workload_named(stored.workload), stored.steps)
        ends = stored.low, stored.band.high.losses
        middle = [math.sqrt(low * high) for low, high in zip(*ends, strict=True)]
        assert 1.1 * wide.low.losses[0] < middle[0]
        for loss, widest in zip(middle, wide.high.losses, strict=True):
            assert loss < widest / 1.1
