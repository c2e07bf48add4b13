"""Checks of the witness: the timed session trained what the cell says, as often as it says."""

import math

from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import Witness, may_skip_updates
from bench_protocol.training import recomputation, wide_band, witness_verdict
from bench_protocol.training.recomputed import Band
from bench_protocol.training.witness_steps import witness_steps
from bench_protocol.trust import shows

from .case import Case
from .evidence import missing_readings
from .verdicts import Finding

# Zeros of a dropout layer in 32 samples, against its rate. Five standard deviations of 500 values
# at a rate of one half; layers have thousands, and the least rate of the catalogue is 0.2.
MASK_TOLERANCE = 0.1
WIDE = (
    "the server has not recomputed the losses: it does not have the data or the frozen weights, or "
    "its recomputation comes later. It checked only that "
    f"the first is {wide_band.FIRST_LOSS[0]:g} to {wide_band.FIRST_LOSS[1]:g} "
    f"times, and each later one at most {wide_band.LATER_LOSS:g} times, the loss of "
    "guessing"
)


def witness(case: Case) -> Finding:
    """Losses of both readings are within the recomputed range, every trained tensor moved, dropout
    dropped."""
    told = case.measured.witness
    if told is None:
        return _unverified("it has no witness of the timed session")
    if case.workload.digest != case.result.cell.workload_digest:
        return _unverified("the workload's definition has changed since")
    band, start = _reference(case, told)
    judged = witness_verdict.judge(
        case.result.cell,
        case.workload,
        told.steps,
        told.losses,
        band,
        movements=told.movements,
        architecture=case.architecture,
        rewound=told.rewound,
        start=start,
        may_skip_updates=_may_skip_updates(case),
    )
    numbers = {
        "verdict": judged.kind,
        "deviation": None if judged.deviation == math.inf else judged.deviation,
        "limit": judged.limit,
    }
    if judged.kind == "wrong_result":
        return Finding(False, judged.sentence, numbers)
    if wrong := _wrong_masks(case.workload, told):
        return Finding(False, wrong, numbers | {"verdict": "wrong_result"})
    if band is None:
        waiting = case.waits("timed")
        return Finding(False, waiting.sentence, {"verdict": waiting.verdict})
    missing = list(missing_readings(case.workload, case.result.cell.batch_size, told))
    if missing:  # the check "evidence" unranks it
        return _unverified(f"a current agent also sends {', '.join(missing)}")
    passed = judged.kind == "conformant"
    if passed and start is None:
        return Finding(True, WIDE, numbers | {"verdict": shows.WIDE_BAND})
    return Finding(passed, judged.sentence, numbers)


def _reference(case: Case, told: Witness) -> tuple[Band | None, float | None]:
    """The recomputed range of the losses, and the loss before the first step. Without a
    recomputation: the wide band."""
    if case.is_seeded and (said := case.recomputation("timed")) is not None:
        figures = said.figures
        return (figures.band, figures.start_loss) if figures else (None, None)
    return _wide_band(case), None


def _wide_band(case: Case) -> Band | None:
    """The band where the server has recomputed nothing because that needs files."""
    if recomputation.session_is_generated(case.result):
        return None
    # Use the steps that the witness should have: the result may name any others.
    steps = witness_steps(case.workload, case.result.cell.batch_size)
    return wide_band.wide_band(case.workload, steps)


def _unverified(sentence: str) -> Finding:
    return Finding(False, sentence, {"verdict": "unverified"})


def _wrong_masks(workload: Workload, told: Witness) -> str | None:
    """The first fault of the dropout masks that were sent, in words."""
    rates = _rates(workload)
    if len(told.masks) not in (0, len(rates)):
        return f"{len(told.masks)} masks were sent, the workload has {len(rates)} dropout layers"
    for number, (mask, rate) in enumerate(zip(told.masks, rates, strict=False), 1):
        if abs(mask.zeros - rate) > MASK_TOLERANCE:
            return f"dropout layer {number} drops {mask.zeros:.3f} of its inputs, not {rate:g}"
        if not mask.differ:
            return f"dropout layer {number} has the same mask in two steps"
    return None


def _may_skip_updates(case: Case) -> bool:
    return may_skip_updates(case.measured.recipe_settings, case.result.cell.precision)


def _rates(workload: Workload) -> list[float]:
    return [layer.rate for layer in workload.layers if isinstance(layer, Dropout)]


def steps(case: Case) -> Finding:
    """The session counted the first step, the warm-up and the timed steps; no more, no fewer.

    Under Keras' dynamic loss scale, in float16, updates whose gradients overflow are left out.
    """
    told, blocks = case.measured.witness, case.measured.blocks
    expected = 1 + blocks.warm_up_steps + blocks.steps
    numbers: dict[str, object] = {"expected": expected}
    if told is None:
        return Finding(True, "no witness counted its steps", numbers, checked=False)
    counted = told.step_count
    return Finding(
        counted == expected or (_may_skip_updates(case) and counted < expected),
        f"its {told.counted_by} counted {counted:,} steps of {expected:,}",
        numbers | {"counted": counted},
    )
