"""Verdicts on traces."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from tests.fakes.seeding import OWN_NONCE, invented_for, traces_of
from tests.fakes.workloads import cell_of

from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.matrix import Cell, Device, DeviceKind, Precision
from bench_protocol.payload.result import Trace
from bench_protocol.training import conformance, trace_limits
from bench_protocol.training.recomputation import trace_jobs, trace_reference

WORKLOAD = workload_named("fashion-mlp")


def cell(device: DeviceKind = "cpu", **changes: Any) -> Cell:
    return cell_of(WORKLOAD).model_copy(update={"device": Device(kind=device), **changes})


REFERENCES: conformance.References = {
    job.purpose: trace_reference(job, invented_for(job))
    for job in trace_jobs(WORKLOAD, OWN_NONCE)
    if job.purpose in conformance.TRACED
}


def traces(sgd: float = 0.0, workload: float = 0.0, **changes: Any) -> list[Trace]:
    """Right traces, their last losses off by a relative deviation."""
    made = []
    short = traces_of(cell(), OWN_NONCE, invented_for)[:2]
    for trace, off in zip(short, (sgd, workload), strict=True):
        *losses, last = trace.losses
        off_losses = (*losses, (last or 0.0) * (1 + off))
        made.append(trace.model_copy(update={"losses": off_losses, **changes}))
    return made


def verdict_on(
    of: Cell,
    made: list[Trace],
    references: conformance.References = REFERENCES,
    architecture: str = "x86_64",
) -> conformance.ConformanceVerdict:
    return conformance.verdict(of, WORKLOAD, made, references, architecture)


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_a_traced_workload_has_no_dropout(workload: Any) -> None:
    for optimizer in conformance.TRACED:
        traced = conformance.trace_workload(workload, optimizer, 3)
        assert not any(isinstance(layer, Dropout) for layer in traced.layers)
        batch_size = conformance.trace_batch_size(workload)
        assert traced.data_set.train_samples == 3 * batch_size
        assert traced.parameter_count == workload.parameter_count


@pytest.mark.parametrize(
    ("name", "batch_size", "is_long"),
    [("mnist-cnn", 32, True), ("cifar100-vgg16", 16, False), ("resnet50-transfer", 4, False)],
)
def test_a_large_step_is_traced_on_few_samples(name: str, batch_size: int, is_long: bool) -> None:
    workload = workload_named(name)
    assert conformance.trace_batch_size(workload) == batch_size
    assert conformance.is_long_traced(workload) is is_long
    steps = [conformance.trace_steps(workload, optimizer) for optimizer in conformance.TRACED]
    assert steps == ([3, 2] if name == "cifar100-vgg16" else [3, 3])


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
        ("metal", 0, 4.9e-2, "unverified"),
        ("metal", 0, 0.77, "wrong_result"),
        ("cuda", 0, 0.4, "wrong_result"),
    ],
)
def test_the_largest_deviation_decides(
    device: DeviceKind, sgd: float, workload: float, kind: str
) -> None:
    verdict = verdict_on(cell(device), traces(sgd, workload))
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
    verdict = verdict_on(cell(device), traces(off), architecture=architecture)
    assert verdict.kind == kind
    if device == "cpu" and kind == "unverified":
        assert f"measured on x86_64, not on {architecture}" in verdict.reason


@pytest.mark.parametrize("precision", get_args(Precision))
@pytest.mark.parametrize("device", get_args(DeviceKind))
@pytest.mark.parametrize("step", range(trace_limits.MOST_STEPS))
def test_every_limit_is_finite(device: DeviceKind, precision: Precision, step: int) -> None:
    """Also under the workload's own optimiser, where nothing was measured."""
    doubled = traces()
    losses = list(doubled[1].losses)
    losses[step] = 2 * (losses[step] or 0)
    doubled[1] = doubled[1].model_copy(update={"losses": tuple(losses)})
    verdict = verdict_on(cell(device, precision=precision), doubled)
    assert (verdict.kind, verdict.deviation) == ("wrong_result", pytest.approx(1.0))
    measured = (device, precision, "workload") in trace_limits.TOLERANCES
    assert ("derived, not measured" in verdict.reason) is not measured


def test_derived_limits_are_at_least_three_times_the_coarsest_measured_ones() -> None:
    coarsest = trace_limits.TOLERANCES["cpu", "mixed_bfloat16", "workload"]
    derived = trace_limits.UNMEASURED["workload"]
    for limit, measured in zip(derived, coarsest, strict=True):
        assert limit >= 3 * measured * (1 - 1e-9)


def test_a_precision_without_tolerance_is_unverified() -> None:
    verdict = verdict_on(cell(precision="mixed_float16"), traces())
    assert verdict.kind == "unverified"
    assert "mixed_float16" in verdict.reason


@pytest.mark.parametrize(("sgd", "kind"), [(1.3e-3, "conformant"), (5e-3, "wrong_result")])
def test_half_precision_may_be_off_by_its_own_rounding(sgd: float, kind: str) -> None:
    half = cell(precision="mixed_bfloat16")
    assert verdict_on(half, traces(sgd, sgd)).kind == kind


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_loss_that_is_no_number_is_wrong(device: DeviceKind) -> None:
    broken = traces()
    losses = (*broken[1].losses[:-1], None)
    broken[1] = broken[1].model_copy(update={"losses": losses})
    verdict = verdict_on(cell(device), broken)
    assert (verdict.kind, verdict.deviation) == ("wrong_result", float("inf"))


OTHER_JOBS = ({"seed": "f" * 32}, {"batch_size": 7}, {"losses": (1.0, 2.0)})


@pytest.mark.parametrize("made", [[], traces()[:1], *(traces(**change) for change in OTHER_JOBS)])
def test_a_missing_trace_or_one_of_another_job_says_nothing(made: list[Trace]) -> None:
    assert verdict_on(cell(), made).kind == "unverified"


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
    references: conformance.References = {
        key: replace(
            reference,
            figures=reference.figures.model_copy(
                update={
                    "movements": (1.0, 1.0),
                    "rounding": (0.0, 0.0, 1e-4),
                    "movements_rounding": (0.0, 1e-2),
                }
            ),
        )
        for key, reference in REFERENCES.items()
    }
    made = []
    for trace in traces(off, off):
        made.append(trace.model_copy(update={"movements": (1.0049, 1 + moved)}))
    verdict = verdict_on(cell(), made, references)
    assert verdict.kind == kind, verdict
    if kind == "conformant":
        assert verdict.reason.endswith("within four times the effect of rounding")
    if moved and kind == "wrong_result":
        assert "trained tensor 2 is off by 0.041, 0.04 is allowed" in verdict.reason
