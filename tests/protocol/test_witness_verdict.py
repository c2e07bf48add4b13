"""Verdicts on the witness of a timed session."""

import math
from functools import cache
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from tests.fakes.workloads import TINY, cell_of, variant

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.layers import Conv2D, Dense, Dropout, Flatten
from bench_protocol.catalogue.matrix import Device, DeviceKind, Precision
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import Rewound
from bench_protocol.recompute import Band, Recomputed, timed_job, witness_band
from bench_protocol.recompute.band import MISSED
from bench_protocol.statistics.student_t import quantile
from bench_protocol.training.witness_limits import MEASURED, limits
from bench_protocol.training.witness_verdict import SAME, WIDE, WitnessVerdict, judge

STEPS = (1, 4, 8)
everywhere = pytest.mark.parametrize(
    ("device", "precision"), list(product(get_args(DeviceKind), get_args(Precision)))
)
DROPPED = variant(
    TINY,
    layers=(Flatten(), Dense(units=32), Dropout(rate=0.3), Dense(units=10, activation="linear")),
)


@cache
def band(workload: Workload = TINY) -> Band:
    return witness_band(timed_job(workload, 16, "0" * 32), STEPS[-1])


def judged(
    workload: Workload = TINY,
    device: DeviceKind = "cpu",
    precision: Precision = "float32",
    loss_factor: float = 1.0,
    movement_factor: float = 1.0,
    again_factor: float = 1.0,
    **changes: Any,
) -> WitnessVerdict:
    """The verdict on the recomputation itself, its last values multiplied.

    ``movement_factor``: of the session's end; ``again_factor``: of the second reading.
    """
    right = band(workload).high
    losses = [right.losses[step - 1] for step in STEPS]
    losses[-1] *= loss_factor
    movements = list(right.movements)
    movements[-1] *= movement_factor
    again = rewound(workload=workload)
    moved = (*right.movements[:-1], again_factor * right.movements[-1])
    cell = cell_of(workload, batch_size=16, precision=precision)
    values: dict[str, Any] = {
        "steps": STEPS,
        "losses": losses,
        "reference": band(workload),
        "movements": movements,
        "rewound": again.model_copy(update={"movements": moved}),
    }
    return judge(
        cell.model_copy(update={"device": Device(kind=device)}), workload, **values | changes
    )


def test_the_recomputation_is_conformant() -> None:
    verdict = judged()
    assert (verdict.kind, verdict.deviation) == ("conformant", 0)
    assert "matches the recomputation exactly; the limit is" in verdict.sentence
    assert "measured, n = 836" in verdict.sentence


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"loss_factor": 1.002}, "the loss of step 8 deviates by 0.002; the limit is 0.001"),
        ({"again_factor": 1.01}, "the movement of 2/bias in the rewound session deviates by 0.01"),
        ({"again_factor": 0.0}, "the movement of 2/bias in the rewound session deviates by 1"),
        ({"again_factor": math.nan}, "the movement of 2/bias in the rewound session is not finite"),
        ({"losses": (2.0, None, 1.0)}, "the loss of step 4 is not finite"),
        ({"losses": (2.0, math.nan, 1.0)}, "the loss of step 4 is not finite"),
        ({"losses": (2.0, 2.0, 2.0)}, "the loss of step 1 deviates"),
        ({"movement_factor": 0.0}, "2/bias has not moved"),
        ({"movements": (1.0,)}, "1 movements were sent, 4 tensors"),
        ({"movements": (1.0, 1.0, None, 1.0)}, "2/kernel is not finite"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], said: str) -> None:
    verdict = judged(**changes)
    assert verdict.kind == "wrong_result"
    assert said in verdict.sentence


@pytest.mark.parametrize("changes", [{"reference": None}, {"steps": (1, 4, 9)}, {"steps": ()}])
def test_what_was_not_recomputed_is_unverified(changes: dict[str, Any]) -> None:
    if changes.get("steps") == ():
        changes = changes | {"losses": (), "rewound": None}
    assert judged(**changes).kind == "unverified"


def test_movements_of_the_end_must_only_be_there() -> None:
    assert judged(movement_factor=3.0).kind == "conformant"
    assert judged(movement_factor=0.0).kind == "wrong_result"


def test_movements_of_the_second_reading_are_compared_where_both_sides_have_them() -> None:
    bare = rewound()
    short = bare.model_copy(update={"movements": (0.5,)})
    assert judged(rewound=bare).kind == "conformant"
    losses = [Recomputed(end.losses, ()) for end in (band().low, band().high)]
    assert judged(again_factor=1.01, reference=Band(*losses)).kind == "conformant"
    assert judged(rewound=short).sentence == "1 movements were sent, 4 tensors are trained"


def test_a_relu_that_rounding_decides_is_not_wrong() -> None:
    """Seen: a movement 2.4e-3 and a loss 2.4e-4 off (mnist-dense, PyTorch, n = 800 sessions)."""
    assert judged(again_factor=1 + 2.4e-3, loss_factor=1 + 2.4e-4).kind == "conformant"


def test_updates_that_a_dynamic_loss_scale_leaves_out_are_not_wrong() -> None:
    """A gradient that overflows in the first step of one leaves a tensor where it was."""

    def verdict(factor: float, may_skip_updates: bool) -> str:
        return judged(
            precision="mixed_float16", again_factor=factor, may_skip_updates=may_skip_updates
        ).kind

    assert verdict(0.0, may_skip_updates=True) == "conformant"
    assert verdict(0.0, may_skip_updates=False) == "wrong_result"
    assert verdict(2.0, may_skip_updates=True) == "wrong_result"


@everywhere
def test_a_tensor_that_moved_twice_as_far_is_wrong_everywhere(
    device: DeviceKind, precision: Precision
) -> None:
    assert judged(device=device, precision=precision).kind == "conformant"
    wrong = judged(device=device, precision=precision, again_factor=2.0)
    assert wrong.kind == "wrong_result"
    assert "the movement of 2/bias in the rewound session" in wrong.sentence


@everywhere
@pytest.mark.parametrize("convolves", [False, True])
def test_limits_are_finite_everywhere(
    device: DeviceKind, precision: Precision, convolves: bool
) -> None:
    layers = (Conv2D(filters=2, kernel=3, padding="same"),) if convolves else ()
    found = limits(variant(TINY, layers=(*layers, *TINY.layers)), device, precision)
    assert 0 < found.first <= found.few <= found.many <= 1
    assert 0 < found.few_moved <= found.many_moved <= 1
    assert ("not measured" in found.source) == ((device, precision, convolves) not in MEASURED)


def rewound(loss_factor: float = 1.0, start_factor: float = 1.0, workload: Workload = TINY) -> Any:
    right = band(workload).high.losses
    losses = (right[0], right[3], loss_factor * right[7])
    return Rewound(start_loss=start_factor * right[0], losses=losses)


@pytest.mark.parametrize("reference", [True, False])
def test_the_second_reading_is_as_the_first(reference: bool) -> None:
    known = {} if reference else {"reference": None}
    start = band().high.losses[0]
    verdict = judged(rewound=rewound(), start=start, **known)
    assert verdict.kind == ("conformant" if reference else "unverified")
    for again, says in (
        (rewound(loss_factor=1.002), "the loss of step 8 in the rewound session"),
        (rewound(start_factor=1.00001), "the loss before the first step, without dropout,"),
    ):
        verdict = judged(rewound=again, start=start, **known)
        assert verdict.kind == "wrong_result"
        assert verdict.sentence.startswith(says)
    for lost in ({"losses": (2.0, None, 1.0)}, {"start_loss": None}):
        again = rewound().model_copy(update=lost)
        assert judged(rewound=again, **known).kind == "wrong_result"


def test_dropout_that_drops_nothing_in_the_rewound_session() -> None:
    """Its first loss is the one without dropout, which may well lie within the range."""
    low, high = band(DROPPED).low.losses, band(DROPPED).high.losses
    inside = [(low[step - 1] * high[step - 1]) ** 0.5 for step in STEPS]
    start = 0.999 * inside[0]
    drops = Rewound(start_loss=start, losses=tuple(inside))
    assert judged(DROPPED, losses=inside, rewound=drops, start=start).kind == "conformant"
    bare = drops.model_copy(update={"losses": (start * (1 + 1e-7), *inside[1:])})
    verdict = judged(DROPPED, losses=inside, rewound=bare, start=start)
    assert verdict.kind == "wrong_result"
    assert verdict.sentence == "dropout does not change the loss of step 1"


def test_masks_seldom_leave_a_loss_as_it_is() -> None:
    """A simulation: a normal loss with the spread of the narrowest range that is judged."""
    draws = np.random.default_rng(1).standard_normal(2_000_000)
    spread = WIDE * SAME / 2 / (quantile(5, 1 - MISSED) * math.sqrt(1 + 1 / 6))
    # The closest that the loss without dropout can be to most losses: their mean.
    assert np.mean(np.abs(spread * draws) <= SAME) < 7e-4


def test_a_frozen_base_has_the_limits_of_what_is_trained() -> None:
    workload = workload_named("resnet50-transfer")
    assert limits(workload, "cpu", "float32") == MEASURED["cpu", "float32", False]
    workload = workload_named("cifar100-vgg16")
    assert limits(workload, "cpu", "float32") == MEASURED["cpu", "float32", True]


def test_bfloat16_called_float32_is_seen() -> None:
    """The least that four frameworks' first loss was off in bfloat16: 6.3e-6 (mnist-cnn)."""
    right = band().high.losses
    losses = [right[0] * (1 + 6.3e-6), right[3], right[7]]
    assert judged(losses=losses).kind == "wrong_result"
    assert judged(losses=losses, precision="mixed_bfloat16").kind == "conformant"


def test_a_gpu_without_a_measurement_has_a_derived_limit() -> None:
    verdict = judged(device="cuda", loss_factor=1.01)
    assert verdict.kind == "wrong_result"
    assert "not measured on cuda: 4 times the limit of a CPU" in verdict.sentence
    assert judged(device="metal", precision="mixed_float16", loss_factor=1.7).kind == "wrong_result"


def test_with_dropout_a_band_decides() -> None:
    low, high = band(DROPPED).low, band(DROPPED).high
    inside = [(low.losses[step - 1] * high.losses[step - 1]) ** 0.5 for step in STEPS]
    again = Rewound(start_loss=0.999 * inside[0], losses=tuple(inside), movements=low.movements)
    assert judged(DROPPED, losses=inside, rewound=again).kind == "conformant"
    far = again.model_copy(update={"movements": tuple(1.5 * moved for moved in high.movements)})
    assert "movement" in judged(DROPPED, losses=inside, rewound=far).sentence
    assert judged(DROPPED, loss_factor=1.5).kind == "wrong_result"


@pytest.mark.parametrize(
    ("architecture", "factor", "kind"),
    [
        ("x86_64", 1 + 2e-3, "wrong_result"),
        ("arm64", 1 + 5e-6, "conformant"),
        ("arm64", 1 + 2e-3, "unverified"),
        ("arm64", 1 + 2e-2, "wrong_result"),
    ],
)
def test_limits_of_cpus_are_those_of_one_architecture(
    architecture: str, factor: float, kind: str
) -> None:
    """The last loss is that of many steps: 1e-3 is allowed, measured on x86-64."""
    verdict = judged(loss_factor=factor, architecture=architecture)
    assert verdict.kind == kind
    if kind == "unverified":
        assert verdict.sentence.endswith("measured on x86_64, not on arm64")
    again = rewound(loss_factor=factor)
    assert judged(rewound=again, architecture=architecture).kind == kind
    alone = judged(rewound=again, architecture=architecture, reference=None)
    assert (alone.kind == "wrong_result") == (kind == "wrong_result")
