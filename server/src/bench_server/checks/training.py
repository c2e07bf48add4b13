"""Checks of what was trained: the model, its losses, its accuracy, and its traces."""

import math

from bench_protocol.training import accuracy, loss_by_steps, recomputation
from bench_protocol.training.conformance import is_long_traced

from .case import Case, Waiting
from .verdicts import Effect, Finding

NOT_COMPARED = "its traces were not compared with a recomputation"


def parameter_count(case: Case) -> Finding:
    found, wanted = case.measured.parameter_count, case.workload.parameter_count
    return Finding(
        found == wanted,
        f"the model has {found:,} parameters, the workload has {wanted:,}",
        {"parameters": found, "wanted": wanted},
    )


def finite_loss(case: Case) -> Finding:
    loss = case.measured.last_loss
    sentence = f"the last loss is {'not finite' if loss is None else 'finite'}"
    return Finding(loss is not None, sentence, {"last_loss": loss})


def falling_loss(case: Case) -> Finding:
    """The last batch's loss is in the range that honest trainings of the same length reach."""
    blocks = case.measured.blocks
    steps = 1 + blocks.warm_up_steps + blocks.steps
    loss = case.measured.last_loss
    verdict = loss_by_steps.judge(case.result.cell, case.workload, steps, loss)
    numbers = {"last_loss": loss, "steps": steps}
    return Finding(
        verdict.verdict != "outside",
        verdict.sentence,
        numbers,
        checked=verdict.verdict != "unchecked",
    )


def right_accuracy(case: Case) -> Finding:
    """Accuracy after full epochs lies in its band; without band or full epochs it passes."""
    found = accuracy.judge(case.workload, case.measured, case.result.cell.batch_size)
    return Finding(
        found.verdict != "diverged",
        found.sentence,
        {"verdict": found.verdict},
        checked=found.verdict != "accuracy_unchecked",
    )


def right_computation(case: Case) -> Finding:
    """No loss of the traces is so far off that another computation was timed."""
    found = case.conformance
    if found is None or found.deviation is None:
        return Finding(True, NOT_COMPARED, {"verdict": "unverified"}, checked=False)
    wrong = found.kind == "wrong_result"
    right = "its traces show no other computation"
    return Finding(not wrong, found.reason if wrong else right, {"verdict": found.kind})


def conformance(case: Case) -> Finding:
    """Every loss and movement of the short traces is within the measured tolerance of what the
    server recomputed from the challenge's nonce."""
    found = case.conformance
    if found is None:
        return _not_recomputed(case.waits("sgd", "workload"))
    return Finding(found.kind == "conformant", found.reason, _figures(found.kind, found.deviation))


def long_run(case: Case) -> Finding:
    """The long trace is within the tolerance of what the server recomputed from the challenge's
    nonce."""
    if not is_long_traced(case.workload):
        return Finding(True, "a step is too large for a long trace", {}, checked=False)
    found = recomputation.long_verdict(case.result, case.known, case.architecture)
    if found is None:
        return _not_recomputed(case.waits("long"))
    return Finding(
        found.kind == "conformant", found.sentence, _figures(found.kind, found.deviation)
    )


def _not_recomputed(waiting: Waiting) -> Finding:
    return Finding(False, waiting.sentence, _figures(waiting.verdict, None))


def _figures(verdict: str, deviation: float | None) -> dict[str, object]:
    return {"verdict": verdict, "deviation": None if deviation == math.inf else deviation}


def wrong_or_doubtful(finding: Finding) -> Effect:
    """A wrong computation unranks; one that could not be compared is a doubt."""
    return "unranked" if finding.figures.get("verdict") == "wrong_result" else "doubtful"
