"""Verdicts on traces."""

from typing import Any, get_args

import pytest
from tests.fakes.workloads import cell_of

from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.matrix import Cell, Device, DeviceKind, Precision
from bench_protocol.payload.result import Trace
from bench_protocol.training import conformance, trace_limits

WORKLOAD = workload_named("fashion-mlp")


def cell(device: DeviceKind = "cpu", **changes: Any) -> Cell:
    return cell_of(WORKLOAD).model_copy(update={"device": Device(kind=device), **changes})


def traces(sgd: float = 0.0, workload: float = 0.0, **changes: Any) -> list[Trace]:
    """The reference, its last loss off by a relative deviation."""
    made = []
    for optimizer, off in (("sgd", sgd), ("workload", workload)):
        right = conformance.references()[WORKLOAD.digest, optimizer]
        losses = (*right.losses[:-1], right.losses[-1] * (1 + off))
        fields = {"batch_size": right.batch_size, "seed": right.seed, "losses": losses}
        made.append(Trace(optimizer=optimizer, **{**fields, **changes}))  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_every_workload_has_its_reference(workload: Any) -> None:
    """After a change of the catalogue: python -m benchmarks.limits.reference_traces."""
    for optimizer in conformance.TRACED:
        reference = conformance.references()[workload.digest, optimizer]
        assert reference.workload == workload.name
        assert reference.batch_size == conformance.trace_batch_size(workload)
        assert len(set(reference.losses)) == len(reference.rounding) == conformance.STEPS
        traced = conformance.trace_workload(workload, optimizer)
        assert not any(isinstance(layer, Dropout) for layer in traced.layers)
        assert traced.data_set.train_samples == conformance.STEPS * reference.batch_size
        assert traced.parameter_count == workload.parameter_count


@pytest.mark.parametrize(
    ("device", "sgd", "workload", "kind"),
    [
        ("cpu", 0, 0, "conformant"),
        ("cpu", 5e-6, 5e-6, "conformant"),
        ("cpu", 5e-4, 0, "wrong_result"),
        ("cpu", 0, 5e-4, "wrong_result"),
        ("cuda", 0, 0, "unverified"),
        ("cuda", 5e-3, 0, "unverified"),
        ("cuda", 5e-2, 0, "wrong_result"),
        ("metal", 0, 5e-2, "unverified"),
        ("metal", 0, 0.77, "wrong_result"),
        ("cuda", 0, 0.4, "wrong_result"),
    ],
)
def test_the_largest_deviation_decides(
    device: DeviceKind, sgd: float, workload: float, kind: str
) -> None:
    verdict = conformance.verdict(cell(device), traces(sgd, workload))
    assert verdict.kind == kind
    assert verdict.deviation == pytest.approx(max(sgd, workload), abs=1e-8)


@pytest.mark.parametrize(
    ("architecture", "device", "off", "kind"),
    [
        ("x86_64", "cpu", 2e-5, "wrong_result"),
        ("AMD64", "cpu", 2e-5, "wrong_result"),
        ("arm64", "cpu", 5e-6, "conformant"),
        ("arm64", "cpu", 2e-5, "unverified"),
        ("aarch64", "cpu", 3.9e-5, "unverified"),
        ("arm64", "cpu", 5e-5, "wrong_result"),  # planted faults are above 1e-4
        ("arm64", "metal", 2e-5, "unverified"),
        ("arm64", "metal", 5e-2, "wrong_result"),
    ],
)
def test_limits_of_cpus_were_measured_on_one_architecture(
    architecture: str, device: DeviceKind, off: float, kind: str
) -> None:
    verdict = conformance.verdict(cell(device), traces(off), architecture=architecture)
    assert verdict.kind == kind
    if device == "cpu" and kind == "unverified":
        assert f"measured on x86_64, not on {architecture}" in verdict.reason


@pytest.mark.parametrize("precision", get_args(Precision))
@pytest.mark.parametrize("device", get_args(DeviceKind))
@pytest.mark.parametrize("step", range(conformance.STEPS))
def test_every_limit_is_finite(device: DeviceKind, precision: Precision, step: int) -> None:
    """Also under the workload's own optimiser, where nothing was measured."""
    doubled = traces()
    losses = list(doubled[1].losses)
    losses[step] = 2 * (losses[step] or 0)
    doubled[1] = doubled[1].model_copy(update={"losses": tuple(losses)})
    verdict = conformance.verdict(cell(device, precision=precision), doubled)
    assert (verdict.kind, verdict.deviation) == ("wrong_result", pytest.approx(1.0))
    measured = (device, precision, "workload") in trace_limits.TOLERANCES
    assert ("derived, not measured" in verdict.reason) is not measured


def test_derived_limits_are_at_least_three_times_the_coarsest_measured_ones() -> None:
    coarsest = trace_limits.TOLERANCES["cpu", "mixed_bfloat16", "workload"]
    derived = trace_limits.UNMEASURED["workload"]
    for limit, measured in zip(derived, coarsest, strict=True):
        assert limit >= 3 * measured * (1 - 1e-9)


def test_a_precision_without_tolerance_is_unverified() -> None:
    verdict = conformance.verdict(cell(precision="mixed_float16"), traces())
    assert verdict.kind == "unverified"
    assert "mixed_float16" in verdict.reason


@pytest.mark.parametrize(("sgd", "kind"), [(1.3e-3, "conformant"), (5e-3, "wrong_result")])
def test_half_precision_may_be_off_by_its_own_rounding(sgd: float, kind: str) -> None:
    half = cell(precision="mixed_bfloat16")
    assert conformance.verdict(half, traces(sgd, sgd)).kind == kind


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_loss_that_is_no_number_is_wrong(device: DeviceKind) -> None:
    broken = traces()
    losses = (*broken[1].losses[:-1], None)
    broken[1] = broken[1].model_copy(update={"losses": losses})
    verdict = conformance.verdict(cell(device), broken)
    assert (verdict.kind, verdict.deviation) == ("wrong_result", float("inf"))


@pytest.mark.parametrize("changes", [{"seed": "f" * 32}, {"batch_size": 7}, {"losses": (1.0, 2.0)}])
def test_a_trace_of_another_job_says_nothing(changes: dict[str, Any]) -> None:
    assert conformance.verdict(cell(), traces(**changes)).kind == "unverified"


def test_what_is_missing_says_nothing() -> None:
    assert conformance.verdict(cell(), []).kind == "unverified"
    assert conformance.verdict(cell(), traces()[:1]).kind == "unverified"
    other = cell(workload_digest="0" * 64)
    assert "no reference" in conformance.verdict(other, traces()).reason


@pytest.mark.parametrize(
    ("off", "moved", "kind"),
    [
        (3.9e-4, 0, "conformant"),
        (4.1e-4, 0, "wrong_result"),
        (0, 3.9e-2, "conformant"),
        (0, 4.1e-2, "wrong_result"),
    ],
)
def test_a_trace_may_be_off_by_four_times_what_rounding_decides(
    off: float, moved: float, kind: str
) -> None:
    """Rounding moves the last loss by 1e-4, and the second tensor by 1e-2; the first is near its
    own limit."""
    references = {
        key: reference.model_copy(
            update={
                "movements": (1.0, 1.0),
                "rounding": (*reference.rounding[:-1], 1e-4),
                "movements_rounding": (0.0, 1e-2),
            }
        )
        for key, reference in conformance.references().items()
    }
    made = []
    for trace in traces():
        *losses, last = trace.losses
        changed = {"losses": (*losses, (last or 0) * (1 + off)), "movements": (1.0049, 1 + moved)}
        made.append(trace.model_copy(update=changed))
    verdict = conformance.verdict(cell(), made, references)
    assert verdict.kind == kind, verdict
    if kind == "conformant":
        assert verdict.reason.endswith("within four times the effect of rounding")
    if moved and kind == "wrong_result":
        assert "trained tensor 2 is off by 0.041, 0.04 is allowed" in verdict.reason
