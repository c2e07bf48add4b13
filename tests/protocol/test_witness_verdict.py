"""Verdicts on the witness of a timed session."""

import math
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, get_args

import pytest
from tests.fakes.workloads import TINY, cell_of, dropped, variant

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.layers import Conv2D, Dense
from bench_protocol.catalogue.matrix import Cell, Device, DeviceKind, Precision
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import Reading, Witness
from bench_protocol.recompute import figures
from bench_protocol.training.reading import Part, parts
from bench_protocol.training.recomputed import Figures
from bench_protocol.training.witness_limits import (
    MEASURED,
    START,
    UNIT_ROUNDOFF,
    Limits,
    can_conform,
    derived_limit,
    limits,
    start_limit,
)
from bench_protocol.training.witness_verdict import WitnessVerdict, judge

NONCE, BATCH = "5e" * 32, 16
DROPPED = dropped(Dense(units=32))
CONVOLVED = variant(TINY, layers=(Conv2D(filters=2, kernel=3, padding="same"), *TINY.layers))
HALF: Precision = "mixed_float16"
DYNAMIC = {"loss_scale": "dynamic"}
KINDS = ("deep", "short", "first", "masks", "masks")
everywhere = pytest.mark.parametrize(
    ("device", "precision"), list(product(get_args(DeviceKind), get_args(Precision)))
)
each_number = pytest.mark.parametrize("number", range(4))


@cache
def right(workload: Workload = DROPPED) -> Figures:
    return figures(workload, NONCE, BATCH)


def seed(workload: Workload) -> str:
    return nonces.seed_of(NONCE, workload.digest)


def cell(device: DeviceKind = "cpu", precision: Precision = "float32") -> Cell:
    made = cell_of(DROPPED, batch_size=BATCH, precision=precision)
    return made.model_copy(update={"device": Device(kind=device)})


def honest(workload: Workload = DROPPED) -> Witness:
    """The witness of the recomputation itself; its masks give both ends of their range."""
    readings = [
        Reading(loss=one.loss, movements=one.movements, durations_ns=(1,))
        for one in right(workload).readings
    ]
    masked = [
        readings[-1].model_copy(update={"movements": right(workload).readings[-1].movements_high})
    ]
    return Witness(
        step_count=1,
        counted_by="loop",
        movements=(1.0,) * len(readings[0].movements),
        start_loss=right(workload).start_loss,
        readings=(*readings, *masked) if workload is DROPPED else tuple(readings),
    )


def changed(number: int, workload: Workload = DROPPED, **changes: Any) -> Witness:
    readings = list(honest(workload).readings)
    readings[number] = readings[number].model_copy(update=changes)
    return honest(workload).model_copy(update={"readings": tuple(readings)})


def moved(number: int, factor: float) -> Witness:
    movements = honest().readings[number].movements
    return changed(number, movements=(*movements[:-1], factor * (movements[-1] or 0)))


def judged(
    witness: Witness, device: DeviceKind = "cpu", precision: Precision = "float32", **more: Any
) -> WitnessVerdict:
    more = {"figures": right(), "settings": {}} | more
    return judge(cell(device, precision), DROPPED, seed(DROPPED), witness, **more)


def part(number: int) -> Part:
    return parts(DROPPED, BATCH, seed(DROPPED))[number]


def allowed(number: int, device: DeviceKind = "cpu", precision: Precision = "float32") -> Limits:
    return limits(DROPPED, cell(device, precision), part(number))


def test_the_recomputation_is_conformant() -> None:
    """It says nothing of the movements at the end."""
    assert tuple(part(number).kind for number in range(5)) == KINDS
    assert judged(honest().model_copy(update={"movements": (9.0,) * 4})).kind == "conformant"
    verdict = judged(honest())
    assert (verdict.kind, verdict.deviation) == ("conformant", 0)
    assert verdict.sentence.startswith("its readings match the recomputation exactly; the limit is")


@each_number
@pytest.mark.parametrize("share", [0.9, 1.1])
def test_each_value_beyond_its_limit_is_wrong(number: int, share: float) -> None:
    """Above the range; the movement is that of one tensor of four."""
    one, most, kind = right().readings[number], allowed(number), KINDS[number]
    loss = max(one.loss_range) + share * most.loss * max(*one.loss_range, 0.1)
    high = one.movement_ranges[-1][1]
    moved = (*one.movements[:-1], high * (1 + share * most.movement))
    for changes, named in (
        ({"loss": loss}, f"the loss of the {kind} reading"),
        ({"movements": moved}, f"the movement of 3/bias in the {kind} reading"),
    ):
        verdict = judged(changed(number, **changes))
        assert verdict.kind == ("conformant" if share < 1 else "wrong_result")
        if share > 1:
            assert verdict.sentence.startswith(named)
            assert verdict.deviation == pytest.approx(share * (verdict.limit or 0), rel=1e-6)


@pytest.mark.parametrize(
    ("device", "share", "tensors", "kind"),
    [
        ("cpu", 0.04, None, "conformant"),
        ("cpu", 0.06, None, "wrong_result"),
        ("cpu", 0.19, 1, "conformant"),
        ("cuda", 0.06, None, "unverified"),
        ("cuda", 0.3, None, "wrong_result"),
        ("metal", 0.6, None, "wrong_result"),
    ],
)
def test_all_tensors_are_nearer_than_one_may_be(
    device: DeviceKind, share: float, tensors: int | None, kind: str
) -> None:
    """With convolutions rounding moves one tensor up to 9 % less, steps left out move all."""
    movements = honest(CONVOLVED).readings[0].movements
    less = [(1 - share) * (norm or 0) for norm in movements[:tensors]]
    told = changed(0, CONVOLVED, movements=(*less, *movements[len(less) :]))
    verdict = judge(cell(device), CONVOLVED, seed(CONVOLVED), told, right(CONVOLVED), settings={})
    assert verdict.kind == kind, verdict.sentence
    if kind == "wrong_result":
        assert verdict.sentence.startswith("the median movement in the deep reading deviates by")


@pytest.mark.parametrize(("share", "kind"), [(0.9, "conformant"), (1.1, "wrong_result")])
def test_the_loss_before_the_first_step_has_the_tightest_limit(share: float, kind: str) -> None:
    """It shows a precision that is not the cell's: in bfloat16 it is 6.3e-6 off (mnist-cnn)."""
    factor = 1 + share * START["cpu", "float32"]
    off = honest().model_copy(update={"start_loss": factor * right().start_loss})
    assert judged(off).kind == kind
    half = honest().model_copy(update={"start_loss": (1 + 6.3e-6) * right().start_loss})
    assert judged(half).kind == "wrong_result"
    assert judged(half, precision="mixed_bfloat16").kind == "conformant"


@pytest.mark.parametrize(
    ("witness", "says"),
    [
        (changed(0, loss=None), "the loss of reading 1 is not finite"),
        (changed(4, loss=None), "the loss of reading 5 is not finite"),
        (honest().model_copy(update={"start_loss": None}), "the loss before the first step"),
        (changed(1, movements=(1.0,)), "1 movements were sent in reading 2, 4 tensors are trained"),
        (changed(1, movements=(1.0, None, 1.0, 1.0)), "the movement of 1/bias in reading 2 is not"),
        (moved(0, 0.0), "3/bias has not moved in the deep reading, and must by "),
        (
            honest().model_copy(update={"movements": (1.0, 1.0, 0.0, 1.0)}),
            "3/kernel has not moved after the timing",
        ),
        (
            honest().model_copy(update={"movements": (1.0,)}),
            "1 movements were sent after the timing",
        ),
    ],
)
def test_what_is_wrong_is_said(witness: Witness, says: str) -> None:
    verdict = judged(witness)
    assert verdict.kind == "wrong_result"
    assert verdict.sentence.startswith(says)
    if "must" not in says:  # no recomputation is needed to see it
        assert judged(witness, figures=None).kind == "wrong_result"


@pytest.mark.parametrize("count", [0, 4, 6])
def test_other_readings_than_those_of_the_seed_are_unverified(count: int) -> None:
    readings = (*honest().readings, honest().readings[0])[:count]
    verdict = judged(honest().model_copy(update={"readings": readings}))
    assert verdict.kind == "unverified"
    assert verdict.sentence == f"the witness has {count} readings of 5"


@pytest.mark.parametrize(
    "other",
    [
        None,
        Figures(start_loss=2.3, readings=()),
        Figures(start_loss=2.3, readings=(right().readings[0],) * 3),
        Figures(
            start_loss=2.3,
            readings=tuple(
                one.model_copy(update={"movements": (1.0,), "movements_high": ()})
                for one in right().readings
            ),
        ),
    ],
)
def test_what_was_not_recomputed_is_unverified(other: Figures | None) -> None:
    """Figures of other readings or tensors are of another job."""
    assert judged(honest(), figures=other).kind == "unverified"


def test_readings_whose_updates_all_overflowed_show_no_masks() -> None:
    """Keras' dynamic loss scale begins too high for them: nothing is known of the masks."""
    still = [changed(number, movements=(0.0,) * 4).readings[number] for number in (3, 4)]
    told = honest().model_copy(update={"readings": (*honest().readings[:3], *still)})
    assert judged(told).kind == "wrong_result"
    dynamic = judged(told, "cuda", HALF, settings=DYNAMIC)
    assert dynamic.kind == "unverified"
    assert dynamic.sentence.startswith("a dynamic loss scale may leave out updates")


def test_readings_with_the_same_masks_are_wrong() -> None:
    same = changed(3, **honest().readings[4].model_dump(include={"loss", "movements"}))
    assert "layers do not drop, or repeat their masks" in judged(same).sentence
    assert judged(same, figures=None).kind == "wrong_result"
    movements = honest().readings[4].movements
    rounded = changed(3, movements=tuple((1 + 1e-6) * (one or 0) for one in movements))
    assert judged(rounded).kind == "wrong_result"
    low, high = right().readings[3].movement_ranges[-1]
    one_differs = (*movements[:-1], (low + high) / 2)
    assert judged(changed(3, movements=one_differs)).kind == "conformant"


def test_updates_that_a_dynamic_loss_scale_leaves_out_are_not_wrong() -> None:
    """A gradient that overflows in the first step of one leaves a tensor where it was."""
    assert judged(moved(1, 0.0), precision=HALF, settings=DYNAMIC).kind == "unverified"
    assert judged(moved(1, 1e9), precision=HALF, settings=DYNAMIC).kind == "wrong_result"
    assert judged(moved(1, 0.0), precision=HALF, settings={"loss_scale": "1024"}).deviation == 1
    assert judged(moved(1, 0.0), settings=DYNAMIC).kind == "wrong_result"


@each_number
@pytest.mark.parametrize(("device", "most"), [("metal", 10), ("cuda", 4)])
def test_on_a_gpu_a_value_beyond_its_limit_is_unverified_before_it_is_wrong(
    number: int, device: DeviceKind, most: int
) -> None:
    """In float32. Limits are derived on Metal, with CUDA measured on one GPU."""
    one, limit = right().readings[number], allowed(number, device).movement
    high = one.movement_ranges[-1][1]

    def far(times: float) -> WitnessVerdict:
        movements = (*one.movements[:-1], high * (1 + times * limit))
        return judged(changed(number, movements=movements), device)

    assert far(0.9).kind == "conformant"
    for times in (1.1, 0.9 * most):
        assert far(times).kind == "unverified"
        assert "was not measured on this" in far(times).sentence
    wrong = far(1.1 * most)
    assert wrong.kind == "wrong_result"
    assert f"), {most} times that are wrong" in wrong.sentence
    derived = "derived from a unit roundoff of 6.0e-08" in wrong.sentence
    assert derived == (device == "metal")


@everywhere
def test_coarse_derived_limits_never_make_a_session_conformant(
    device: DeviceKind, precision: Precision
) -> None:
    verdict = judged(honest(), device, precision)
    fine = precision == "float32" or (device, precision) in MEASURED
    assert can_conform(device, precision) == fine
    assert verdict.kind == ("conformant" if fine else "unverified")
    assert ("too coarse to show that they conform" in verdict.sentence) == (not fine)
    assert judged(moved(0, 100.0), device, precision).kind == "wrong_result"


@everywhere
@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_tensor_that_stands_still_is_wrong_under_any_limits(
    device: DeviceKind, precision: Precision, number: int
) -> None:
    """It deviates by 1, and ten times a coarse limit is more."""
    still = moved(number, 0.0)
    for architecture in ("x86_64", "arm64"):
        assert judged(still, device, precision, architecture=architecture).kind == "wrong_result"
    assert "has not moved in the" in judged(still, device, precision).sentence
    if precision == HALF:
        assert judged(still, device, precision, settings=DYNAMIC).kind == "unverified"


@pytest.mark.parametrize(("low", "kind"), [(1e-6, "unverified"), (1e-5, "wrong_result")])
def test_a_movement_that_rounding_hides_is_not_known_to_be_wrong(low: float, kind: str) -> None:
    """Three steps of ten weights, each below the distance to the next float32."""
    readings = list(right().readings)
    moves = (*readings[1].movements[:-1], low)
    readings[1] = readings[1].model_copy(update={"movements": moves, "movements_high": ()})
    figures = right().model_copy(update={"readings": tuple(readings)})
    told = changed(1, movements=(*moves[:-1], 0.0))
    assert judged(told, "metal", "mixed_bfloat16", figures=figures).kind == kind


@everywhere
@pytest.mark.parametrize("convolves", [False, True])
def test_limits_are_finite_everywhere(
    device: DeviceKind, precision: Precision, convolves: bool
) -> None:
    layers = (Conv2D(filters=2, kernel=3, padding="same"),) if convolves else ()
    workload = variant(TINY, layers=(*layers, *TINY.layers))
    where = cell(device, precision)
    assert 0 < start_limit(workload, where) < 1
    for kind in ("first", "short", "deep", "masks"):
        found = limits(workload, where, replace(part(0), kind=kind))
        assert 0 < found.loss <= found.movement < math.inf
        is_measured = (device, precision) in MEASURED
        assert (found.source == "measured") == is_measured
        assert found.wrong_beyond == (1 if is_measured else 10)


def test_derived_limits_grow_as_rounding_does() -> None:
    """With the unit roundoff, the root of the steps and that of the longest sum."""
    vgg = workload_named("cifar100-vgg16")
    for precision, unit in UNIT_ROUNDOFF.items():
        assert derived_limit(vgg, precision, 1) == pytest.approx(
            derived_limit(vgg, "float32", 1) * unit * 2**24
        )
    assert derived_limit(vgg, "tf32", 4) == pytest.approx(2 * derived_limit(vgg, "tf32", 1))
    # Two products of 64 and 16 terms, each with two backward.
    assert derived_limit(TINY, "float32", 1) == pytest.approx(4 * 8 * 2**-24 * math.sqrt(6))


@pytest.mark.parametrize(
    ("architecture", "times", "kind"),
    [
        ("x86_64", 1.1, "wrong_result"),
        ("AMD64", 1.1, "wrong_result"),
        ("arm64", 0.9, "conformant"),
        ("arm64", 3.9, "unverified"),
        ("arm64", 4.1, "wrong_result"),
    ],
)
def test_limits_of_cpus_are_those_of_one_architecture(
    architecture: str, times: float, kind: str
) -> None:
    assert judged(moved(0, 1 + times * allowed(0).movement), architecture=architecture).kind == kind


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "conformant"),
        ({"start_loss": 0.79 * math.log(10)}, "wrong_result"),
        ({"start_loss": 1.31 * math.log(10)}, "wrong_result"),
        ({"movements": (0.0,) * 4}, "wrong_result"),
        ({"readings": changed(0, loss=1.51 * math.log(10)).readings}, "wrong_result"),
        ({"readings": changed(3, loss=0.01).readings}, "conformant"),
        ({"readings": (*honest().readings[:4], honest().readings[3])}, "wrong_result"),
        ({"readings": ()}, "unverified"),
        ({"readings": honest().readings[:4]}, "unverified"),
    ],
)
def test_without_a_recomputation_losses_are_in_a_wide_range(
    changes: dict[str, Any], kind: str
) -> None:
    assert judged(honest().model_copy(update=changes), figures=None, widely=True).kind == kind


def test_without_dropout_no_masks_are_read() -> None:
    made = judge(cell(), TINY, seed(TINY), honest(TINY), right(TINY), settings={})
    assert made.kind == "conformant"
