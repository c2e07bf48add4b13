"""Verdict on the witness: the timed session's readings against their recomputation."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from ..base import format as people
from ..catalogue import architectures
from ..catalogue.matrix import Cell
from ..catalogue.workloads import Workload
from ..payload import witness as payload
from ..payload.witness import Reading, TrainedTensor, Witness, trained_tensors
from .reading import Part, parts, parts_recomputed
from .recomputed import Figures, Recomputed
from .witness_limits import Limits, can_conform, limits, start_limit, still_limit

# Losses are compared by relative error. Below this floor the error is divided by the floor, because
# a small loss has few correct digits.
LOSS_FLOOR = 0.1
LEAST_MOVEMENT = 1e-12
# Movements of two readings with other masks differ by more, relative; with the same ones by about
# the rounding of float32.
SAME_MASKS = 1e-4
START = "the loss before the first step, without dropout,"
# The range of an honest session whose data or frozen weights are not at hand, in units of the loss
# of guessing, ``ln(classes)``. Start weights know nothing: 0.98 to 1.08 on generated data, MNIST
# and Fashion-MNIST, every workload and batch size. Later losses: up to 1.19. Both with a margin.
WIDE_START, WIDE_LATER = (0.8, 1.3), 1.5
_Widely = tuple[str, float, tuple[float, float]]
"""A loss: what it is, its value, its range in units of the loss of guessing."""


@dataclass(frozen=True)
class WitnessVerdict:
    """The verdict, with a sentence for people.

    ``deviation`` and ``limit`` belong to the first value that is wrong; if there is none, to the
    value closest to its limit.
    """

    kind: Literal["conformant", "wrong_result", "unverified"]
    sentence: str
    deviation: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class _Compared:
    """A value: what it is, its relative deviation, its limit."""

    name: str
    off: float
    limit: float


def judge(
    cell: Cell,
    workload: Workload,
    seed: str,
    witness: Witness,
    figures: Figures | None,
    *,
    settings: Mapping[str, str],
    architecture: str = architectures.MEASURED,
    widely: bool = False,
) -> WitnessVerdict:
    """Compare a witness with the recomputation of its session.

    Args:
        seed: of the session.
        figures: None if it was not recomputed; then only what is wrong for any session is seen.
        settings: of the recipe. Under a dynamic loss scale a tensor may have moved less.
        architecture: of the machine's processor (:mod:`bench_protocol.catalogue.architectures`).
        widely: where it was not recomputed, because its data or its frozen weights are not at hand,
            compare its losses with the wide range.
    """
    done, tensors = parts(workload, cell.batch_size, seed), [*trained_tensors(workload)]
    may_skip = payload.may_skip_updates(settings, cell.precision)
    if len(witness.readings) != len(done):
        counts = f"{len(witness.readings)} readings of {len(done)}"
        return WitnessVerdict("unverified", f"the witness has {counts}")
    if wrong := next(_wrong_for_any(tensors, witness), None):
        return WitnessVerdict("wrong_result", wrong, math.inf)
    if wrong := _same_masks(done, witness, may_skip):
        return WitnessVerdict("wrong_result", wrong, 0.0)
    if figures is None and widely:
        return _judged_widely(workload, witness)
    if figures is None:
        return WitnessVerdict("unverified", "the witness was not recomputed")
    known = parts_recomputed(done)
    if [len(one.movements) for one in figures.readings] != [len(tensors)] * len(known):
        return WitnessVerdict("unverified", "its recomputation has other readings or tensors")
    if not may_skip and (wrong := _stands_still(done, tensors, witness, figures)):
        return WitnessVerdict("wrong_result", wrong, 1.0)
    start, compared = figures.start_loss, []
    if start is not None:
        off = deviation(witness.start_loss or 0.0, (start, start), LOSS_FLOOR)
        compared = [_Compared(START, off, start_limit(workload, cell))]
    elif wrong := next(_beyond_wide_range(workload, [_wide_start(witness)]), None):
        return WitnessVerdict("wrong_result", wrong)
    rights = dict(zip(known, figures.readings, strict=True))
    for part, reading in zip(done, witness.readings, strict=True):
        if part in rights:
            allowed = limits(workload, cell, part)
            compared += _reading(part, reading, rights[part], allowed, tensors, may_skip)
    factor = allowed.wrong_beyond * architectures.wrong_beyond(cell.device.kind, architecture)
    verdict = _verdict(cell, compared, allowed, factor)
    if may_skip and verdict.kind == "conformant":
        why = "a dynamic loss scale may leave out updates, so its movements show nothing"
        return replace(verdict, kind="unverified", sentence=why)
    return verdict


def _stands_still(
    done: Sequence[Part], tensors: Sequence[TrainedTensor], witness: Witness, figures: Figures
) -> str | None:
    """Which tensor a reading left where it was, although it must move.

    It deviates by 1, which is within ten times a coarse limit. Not in ``first``, where Adam moves a
    weight a full step by a gradient that float16 rounds to 0.
    """
    for part, reading, right in zip(done, witness.readings, figures.readings, strict=False):
        moves = zip(tensors, reading.movements, right.movement_ranges, strict=True)
        for tensor, moved, (low, _) in moves if part.kind != "first" else ():
            if moved == 0 and low > still_limit(tensor, part.steps):
                return f"{tensor} has not moved in {_name(part)}, and must by {low:.2g}"
    return None


def _same_masks(done: Sequence[Part], witness: Witness, may_skip: bool) -> str | None:
    """What is wrong where two readings of one part, with dropout, are one training."""
    shown = zip(done, witness.readings, strict=True)
    masks = [reading.movements for part, reading in shown if part.kind == "masks"]
    if may_skip and not any(any(movements) for movements in masks):
        return None  # no update was made, so nothing is known of the masks
    apart = [
        abs((one or 0.0) - (other or 0.0)) / max(one or 0.0, LEAST_MOVEMENT)
        for one, other in zip(*masks, strict=True)
    ]
    if apart and max(apart) < SAME_MASKS:
        return "two readings with dropout are the same: layers do not drop, or repeat their masks"
    return None


def _judged_widely(workload: Workload, witness: Witness) -> WitnessVerdict:
    named = [_wide_start(witness)]
    named += [
        (f"the loss of reading {number}", reading.loss or 0.0, (0.0, WIDE_LATER))
        for number, reading in enumerate(witness.readings, 1)
    ]
    if wrong := next(_beyond_wide_range(workload, named), None):
        return WitnessVerdict("wrong_result", wrong)
    return WitnessVerdict("conformant", "its losses are in the wide range")


def _wide_start(witness: Witness) -> _Widely:
    return START, witness.start_loss or 0.0, WIDE_START


def _beyond_wide_range(workload: Workload, named: Sequence[_Widely]) -> Iterator[str]:
    guessing = math.log(workload.data_set.classes)
    for name, loss, (low, high) in named:
        if not low * guessing <= loss <= high * guessing:
            wide = f"{low:g} to {high:g} times the loss of guessing"
            yield f"{name} is {loss:.4g}, outside {wide}"


def _name(part: Part) -> str:
    return f"the {part.kind} reading"


def _reading(
    part: Part,
    reading: Reading,
    right: Recomputed,
    allowed: Limits,
    tensors: Sequence[TrainedTensor],
    may_skip: bool,
) -> Iterator[_Compared]:
    name = _name(part)
    off = deviation(reading.loss or 0.0, right.loss_range, LOSS_FLOOR)
    yield _Compared(f"the loss of {name} after {part.steps} steps", off, allowed.loss)
    ranges = zip(reading.movements, right.movement_ranges, strict=True)
    offs = [
        deviation(moved or 0.0, (0.0 if may_skip else low, high), LEAST_MOVEMENT)
        for moved, (low, high) in ranges
    ]
    for tensor, off in zip(tensors, offs, strict=True):
        limit = allowed.movement if tensor.has_gradient else allowed.statistics
        yield _Compared(f"the movement of {tensor} in {name}", off, limit)
    if allowed.median is not None:
        yield _Compared(f"the median movement in {name}", median(offs), allowed.median)


def _verdict(
    cell: Cell, compared: list[_Compared], allowed: Limits, factor: float
) -> WitnessVerdict:
    wrong = next((one for one in compared if not one.off <= factor * one.limit), None)
    one = wrong or max(compared, key=lambda value: value.off / value.limit)
    off, limit, source = people.deviation(one.off), people.deviation(one.limit), allowed.source
    if wrong:
        times = "" if factor == 1 else f", {factor:g} times that are wrong"
        sentence = f"{one.name} deviates by {off}; the limit is {limit} ({source}){times}"
        return WitnessVerdict("wrong_result", sentence, one.off, factor * one.limit)
    if one.off > one.limit:
        beyond = f"the limit of {limit} was not measured on this processor or device"
        sentence = f"{one.name} deviates by {off}; {beyond}"
        return WitnessVerdict("unverified", sentence, one.off, one.limit)
    if not can_conform(cell.device.kind, cell.precision):
        coarse = "which is too coarse to show that they conform"
        sentence = f"its readings are within {limit} ({source}), {coarse}"
        return WitnessVerdict("unverified", sentence, one.off, one.limit)
    how = "exactly" if one.off == 0 else f"to {off} ({one.name})"
    sentence = f"its readings match the recomputation {how}; the limit is {limit} ({source})"
    return WitnessVerdict("conformant", sentence, one.off, one.limit)


def _wrong_for_any(tensors: Sequence[TrainedTensor], witness: Witness) -> Iterator[str]:
    """What no session may show: values that are missing or not finite, tensors that did not
    move."""
    losses = [(START, witness.start_loss)]
    readings = list(enumerate(witness.readings, 1))
    losses += [(f"the loss of reading {number}", reading.loss) for number, reading in readings]
    yield from (f"{name} is not finite" for name, loss in losses if loss is None)
    moved = [("after the timing", witness.movements)]
    moved += [(f"in reading {number}", reading.movements) for number, reading in readings]
    for when, movements in moved:
        if len(movements) != len(tensors):
            yield f"{len(movements)} movements were sent {when}, {len(tensors)} tensors are trained"
            return
        for tensor, movement in zip(tensors, movements, strict=True):
            if movement is None:
                yield f"the movement of {tensor} {when} is not finite"
            elif movement <= 0 and movements is witness.movements:
                yield f"{tensor} has not moved {when}"


def deviation(value: float, ends: tuple[float, float], floor: float) -> float:
    """Relative distance of a value from its range, 0 inside. ``floor``: the least denominator."""
    low, high = ends
    if low <= value <= high:
        return 0.0
    nearest = low if value < low else high
    return abs(value - nearest) / max(nearest, floor)
