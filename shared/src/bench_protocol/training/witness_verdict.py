"""Verdict on the witness: the timed session's losses and movements against a recomputation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..base import format as people
from ..catalogue import architectures
from ..catalogue.layers import Dropout
from ..catalogue.matrix import Cell
from ..catalogue.workloads import Workload
from ..payload.witness import Rewound, trained_tensors
from . import trace_limits
from .recomputed import Band
from .witness_limits import Limits, limits

# Losses are compared by relative error. Below this floor the error is divided by the floor, because
# a small loss has few correct digits.
LOSS_FLOOR = 0.1
# Name of the second reading in sentences.
REWOUND = " in the rewound session"
START = "the loss before the first step, without dropout,"
# Relative: one forward pass of the same batch, computed twice. Seen: 1e-7.
SAME, WIDE = 3e-7, 30_000
# A name, its deviation, its limit.
Compared = tuple[str, float, float]


@dataclass(frozen=True)
class WitnessVerdict:
    """The verdict, with a sentence for people.

    ``deviation`` and ``limit`` belong to the first value beyond its limit; if there is none, to the
    value closest to its limit.
    """

    kind: Literal["conformant", "wrong_result", "unverified"]
    sentence: str
    deviation: float | None = None
    limit: float | None = None


def judge(
    cell: Cell,
    workload: Workload,
    steps: Sequence[int],
    losses: Sequence[float | None],
    reference: Band | None,
    *,
    movements: Sequence[float | None] = (),
    architecture: str = architectures.MEASURED,
    rewound: Rewound | None = None,
    start: float | None = None,
    may_skip_updates: bool = False,
) -> WitnessVerdict:
    """Compare a witness with the recomputation of its job.

    Args:
        steps: after which each loss was read, counted from 1, rising.
        losses: None where a loss was not finite.
        reference: of at least ``steps[-1]`` steps; None if it was not recomputed.
        movements: of each trained tensor at the session's end, in the catalogue's order; None where
            not finite. Each must have moved; a reference of the first steps does not say how far.
        architecture: of the machine's processor. The limits of CPUs were measured on x86-64; on
            others a value beyond them is unverified before it is wrong.
        rewound: the second reading. Without Dropout it is also compared with the first. Its
            movements are compared if the reference has those of its last step.
        start: what ``rewound.start_loss`` must be; None if it was not recomputed.
        may_skip_updates: :func:`.witness.may_skip_updates`. Then a tensor may have moved less.
    """
    tensors = [f"{tensor.index}/{tensor.name}" for tensor in trained_tensors(workload)]
    wrong = _not_finite(steps, losses, rewound)
    if wrong := wrong or _not_moved(tensors, movements, rewound):
        return WitnessVerdict("wrong_result", wrong, math.inf)
    allowed = limits(workload, cell.device.kind, cell.precision)
    factor = architectures.wrong_beyond(cell.device.kind, architecture)
    between = _between_readings(workload, steps, losses, rewound, allowed)
    if reference is None:
        if between:
            verdict = _verdict(between, allowed, factor, architecture)
            if verdict.kind == "wrong_result":
                return verdict
        return WitnessVerdict("unverified", "the witness was not recomputed")
    if not steps:
        return WitnessVerdict("unverified", "the witness has no losses")
    recomputed_steps = len(reference.low.losses)
    if steps[-1] > recomputed_steps:
        return WitnessVerdict(
            "unverified",
            f"the reference has {recomputed_steps} steps; the witness goes to step {steps[-1]}",
        )
    ranges = [(reference.low.losses[step - 1], reference.high.losses[step - 1]) for step in steps]
    compared = _losses(steps, losses, ranges, allowed)
    if rewound and start is not None and _drops_nothing(steps, losses, rewound, ranges):
        return WitnessVerdict("wrong_result", "dropout does not change the loss of step 1", 0.0)
    if rewound:
        compared += _losses(steps, rewound.losses, ranges, allowed, REWOUND)
        if start is not None:
            off = deviation(rewound.start_loss or 0.0, start, start)
            compared.append((START, off, allowed.first))
        if steps[-1] == recomputed_steps:
            compared += _movements(tensors, rewound.movements, reference, allowed, may_skip_updates)
    return _verdict([*compared, *between], allowed, factor, architecture)


def _losses(
    steps: Sequence[int],
    losses: Sequence[float | None],
    ranges: Sequence[tuple[float, float]],
    allowed: Limits,
    when: str = "",
) -> list[Compared]:
    return [
        (f"the loss of step {step}{when}", deviation(loss or 0.0, *ends), allowed.of_loss(step))
        for step, loss, ends in zip(steps, losses, ranges, strict=True)
    ]


def _movements(
    tensors: Sequence[str],
    movements: Sequence[float | None],
    reference: Band,
    allowed: Limits,
    may_skip_updates: bool,
) -> list[Compared]:
    """Compare the movements of the second reading, if both sides have them."""
    if not (movements and reference.low.movements):
        return []
    limit = allowed.of_movement(len(reference.low.losses))
    least = [0.0 if may_skip_updates else low for low in reference.low.movements]
    ends = zip(least, reference.high.movements, strict=True)
    return [
        (
            f"the movement of {name}{REWOUND}",
            deviation(moved or 0.0, low, high, trace_limits.LEAST_MOVEMENT),
            limit,
        )
        for name, moved, (low, high) in zip(tensors, movements, ends, strict=True)
    ]


def _drops_nothing(
    steps: Sequence[int],
    losses: Sequence[float | None],
    rewound: Rewound,
    ranges: Sequence[tuple[float, float]],
) -> bool:
    """Whether the first step's loss, in either reading, is the one without dropout.

    The chance that masks leave a loss as close as ``SAME`` is below 7e-4 where their range is
    ``WIDE`` times as wide, if losses are normal; elsewhere nothing is said.
    """
    low, high = ranges[0]
    start = rewound.start_loss or 0.0
    if steps[0] != 1 or high - low <= WIDE * SAME * high:
        return False
    return any(
        abs((loss or 0.0) - start) <= SAME * start for loss in (losses[0], rewound.losses[0])
    )


def _between_readings(
    workload: Workload,
    steps: Sequence[int],
    losses: Sequence[float | None],
    rewound: Rewound | None,
    allowed: Limits,
) -> list[Compared]:
    """The second reading against the first. Under Dropout their masks differ, so there it is
    compared with a reference alone."""
    if not (rewound and steps) or any(isinstance(layer, Dropout) for layer in workload.layers):
        return []
    first = [(loss or 0.0, loss or 0.0) for loss in losses]
    compared = _losses(steps, rewound.losses, first, allowed, f"{REWOUND}, beside the first one,")
    if steps[0] == 1:
        off = deviation(rewound.start_loss or 0.0, *first[0])
        compared.append((f"{START} beside that of step 1,", off, allowed.first))
    return compared


def _verdict(
    compared: list[Compared], allowed: Limits, factor: float, architecture: str
) -> WitnessVerdict:
    for name, off, limit in compared:
        if not off <= factor * limit:
            times = "" if factor == 1 else f", {factor:g} times that on {architecture}"
            return WitnessVerdict(
                "wrong_result",
                f"{name} deviates by {people.deviation(off)}; the limit is "
                f"{people.deviation(limit)} ({allowed.source}){times}",
                off,
                factor * limit,
            )
    name, off, limit = max(compared, key=lambda value: value[1] / value[2])
    if off > limit:
        return WitnessVerdict(
            "unverified",
            f"{name} deviates by {people.deviation(off)}; the limit of {people.deviation(limit)} "
            f"was measured on {architectures.MEASURED}, not on {architecture}",
            off,
            limit,
        )
    how = " exactly" if off == 0 else f": {name} deviates by {people.deviation(off)}"
    return WitnessVerdict(
        "conformant",
        f"the witness matches the recomputation{how}; "
        f"the limit is {people.deviation(limit)} ({allowed.source})",
        off,
        limit,
    )


def _not_finite(
    steps: Sequence[int], losses: Sequence[float | None], rewound: Rewound | None
) -> str | None:
    """The first loss that is not finite, of both readings."""
    named = [(f"the loss of step {step}", loss) for step, loss in zip(steps, losses, strict=True)]
    if rewound:
        again = zip(steps, rewound.losses, strict=True)
        named += [(f"the loss of step {step}{REWOUND}", loss) for step, loss in again]
        named.append((START, rewound.start_loss))
    for name, loss in named:
        if loss is None or not math.isfinite(loss):
            return f"{name} is not finite"
    return None


def _not_moved(
    tensors: Sequence[str], movements: Sequence[float | None], rewound: Rewound | None
) -> str | None:
    """Find a trained tensor of either reading that has not moved or is not finite."""
    readings = [("", movements), (REWOUND, rewound.movements if rewound else ())]
    for when, moves in readings:
        if moves and len(moves) != len(tensors):
            return f"{len(moves)} movements were sent, {len(tensors)} tensors are trained"
        for name, moved in zip(tensors, moves, strict=False):
            if moved is None or not math.isfinite(moved):
                return f"the movement of {name}{when} is not finite"
            if moved <= 0 and not when:
                return f"{name} has not moved"
    return None


def deviation(value: float, low: float, high: float, floor: float = LOSS_FLOOR) -> float:
    """Relative distance of a value from its range, 0 inside. ``floor``: the least denominator."""
    if low <= value <= high:
        return 0.0
    nearest = low if value < low else high
    return abs(value - nearest) / max(nearest, floor)
