"""Checks of what was trained: the model, its losses, its accuracy, and its traces."""

import math

from bench_protocol.training import accuracy, long_trace, loss_by_steps

from .case import PUBLIC, Case
from .verdicts import Effect, Finding

NOT_COMPARED = "its traces were not compared with a recomputation or a reference"


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
    """After full epochs, where a band is known for the data; what cannot be checked passes."""
    found = accuracy.judge(
        case.workload,
        case.measured,
        batch_size=case.result.cell.batch_size,
    )
    return Finding(
        found.verdict != "diverged",
        found.sentence,
        {"verdict": found.verdict},
        checked=found.verdict != "accuracy_unchecked",
    )


def right_computation(case: Case) -> Finding:
    """No loss of the traces is so far off that another computation was timed."""
    found = case.conformance
    wrong = found.kind == "wrong_result"
    compared = found.deviation is not None
    right = "its traces show no other computation" if compared else NOT_COMPARED
    return Finding(
        not wrong, found.reason if wrong else right, {"verdict": found.kind}, checked=compared
    )


def conformance(case: Case) -> Finding:
    """Every loss and movement of the traces is within the measured tolerance of what the server
    recomputed from the challenge's nonce. The public job shows nothing: its losses are stored."""
    found = case.conformance
    off = found.deviation
    numbers = {"verdict": str(found.kind), "deviation": None if off == math.inf else off}
    if not case.traces_are_seeded and found.kind == "conformant":
        return Finding(False, PUBLIC, numbers | {"verdict": "public_job"})
    if case.traces_are_seeded and off is None and found.kind == "unverified":
        waiting = case.waits("sgd", "workload")
        if waiting.sentence == found.reason:
            numbers["verdict"] = waiting.verdict
    return Finding(found.kind == "conformant", found.reason, numbers)


def long_run(case: Case) -> Finding:
    """The long trace is within the tolerance of its reference. Every result has one if a
    reference is stored."""
    cell = case.result.cell
    if cell.workload_digest not in long_trace.references():
        return Finding(True, "this workload has no long trace", {}, checked=False)
    verdict = long_trace.judge(cell, case.workload, case.measured.traces, case.architecture)
    off = verdict.deviation
    numbers = {"verdict": verdict.kind, "deviation": None if off == math.inf else off}
    return Finding(verdict.kind == "conformant", verdict.sentence, numbers)


def wrong_or_doubtful(finding: Finding) -> Effect:
    """A wrong computation unranks; one that could not be compared is a doubt."""
    return "unranked" if finding.figures.get("verdict") == "wrong_result" else "doubtful"
