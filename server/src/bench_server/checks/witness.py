"""Checks of the witness: the timed session trained what the cell says, as often as it says."""

import math

from bench_protocol.payload.witness import may_skip_updates
from bench_protocol.training import recomputation, witness_verdict
from bench_protocol.training.witness_verdict import WIDE_LATER, WIDE_START, WitnessVerdict
from bench_protocol.trust import shows

from .case import Case
from .verdicts import Effect, Finding

WIDE = (
    "the server has not recomputed the losses: it does not have the data or the frozen weights, or "
    "its recomputation comes later. It checked only that the loss before the first step is "
    f"{WIDE_START[0]:g} to {WIDE_START[1]:g} times, and each later one at most {WIDE_LATER:g} "
    "times, the loss of guessing"
)


def witness(case: Case) -> Finding:
    """Readings are within limits of the recomputation, and every trained tensor moved."""
    told = case.measured.witness
    if told is None:
        return _unverified("it has no witness of the timed session")
    if case.workload.digest != case.result.cell.workload_digest:
        return _unverified("the workload's definition has changed since")
    recomputed = case.recomputed if case.is_seeded else None
    figures, needs_files = recomputed.figures if recomputed else None, _needs_files(case)
    judged = witness_verdict.judge(
        case.result.cell,
        case.workload,
        case.result.seed,
        told,
        figures,
        settings=case.measured.recipe_settings,
        architecture=case.architecture,
        widely=needs_files,
    )
    if needs_files and judged.kind == "conformant":
        return Finding(True, WIDE, {"verdict": shows.WIDE_RANGE})
    if figures is None and not needs_files and judged.kind != "wrong_result":
        return Finding(False, case.waiting.sentence, {"verdict": case.waiting.verdict})
    return Finding(judged.kind == "conformant", judged.sentence, _figures(judged))


def wrong_or_doubtful(finding: Finding) -> Effect:
    """A wrong computation unranks; one that could not be compared is a doubt."""
    return "unranked" if finding.figures.get("verdict") == "wrong_result" else "doubtful"


def _needs_files(case: Case) -> bool:
    return case.recomputed is None and not recomputation.session_is_generated(case.result)


def _figures(judged: WitnessVerdict) -> dict[str, object]:
    deviation = None if judged.deviation == math.inf else judged.deviation
    return {"verdict": judged.kind, "deviation": deviation, "limit": judged.limit}


def _unverified(sentence: str) -> Finding:
    return Finding(False, sentence, {"verdict": "unverified"})


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
    may_skip = may_skip_updates(case.measured.recipe_settings, case.result.cell.precision)
    return Finding(
        counted == expected or (may_skip and counted < expected),
        f"its {told.counted_by} counted {counted:,} steps of {expected:,}",
        numbers | {"counted": counted},
    )
