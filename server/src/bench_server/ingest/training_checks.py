"""Checks of what was trained: the model, its losses, its accuracy, and its traces."""

import math

from bench_protocol import accuracy, long_trace
from bench_protocol.workloads import Workload

from .case import Case
from .verdicts import Effect, Finding

# Standard deviations of a batch's loss that honest results may lie above guessing.
LOSS_DEVIATIONS = 3


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
    """After an epoch, the last batch's loss is not above that of guessing by more than its samples
    explain."""
    cell, loss = case.result.cell, case.measured.last_loss
    steps = case.measured.blocks.warm_up_steps + case.measured.blocks.steps
    epoch = case.workload.steps_per_epoch(cell.batch_size)
    limit = loss_limit(case.workload, cell.batch_size)
    numbers = {"last_loss": loss, "limit": limit, "steps": steps, "steps_per_epoch": epoch}
    if limit is None:
        return Finding(True, "labels are random: the loss need not fall", numbers, checked=False)
    if steps < epoch or loss is None:
        sentence = f"{steps:,} of an epoch's {epoch:,} steps are too few to judge the loss by"
        return Finding(True, sentence, numbers, checked=False)
    sentence = f"the last batch's loss is {loss:.3g}; a batch of guesses stays below {limit:.3g}"
    return Finding(loss <= limit, sentence, numbers)


def loss_limit(workload: Workload, batch_size: int) -> float | None:
    """Highest honest loss of one batch after an epoch; None where nothing can be learnt.

    Guessing gives the logarithm of the classes. A sample's loss varies by about as much, a batch's
    mean by that over the root of the batch size. A band by data and steps would be narrower; this
    is its place.
    """
    if workload.data_set.noise:
        return None
    return math.log(workload.data_set.classes) * (1 + LOSS_DEVIATIONS / math.sqrt(batch_size))


def right_accuracy(case: Case) -> Finding:
    """After full epochs, where a band is known for the data; what cannot be checked passes."""
    found = accuracy.judge(case.workload, case.result.cell.data, case.measured)
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
    sentence = found.reason if wrong else "nothing shows that another computation was timed"
    compared = found.deviation is not None
    return Finding(not wrong, sentence, {"verdict": found.kind}, checked=compared)


def conformance(case: Case) -> Finding:
    """Every loss of the traces is within the measured tolerance of the reference's."""
    found = case.conformance
    off = found.deviation
    numbers = {"verdict": found.kind, "deviation": None if off == math.inf else off}
    return Finding(found.kind == "conformant", found.reason, numbers)


def long_run(case: Case) -> Finding:
    """The long trace is within the tolerance of its reference. Version 2 has one wherever a
    reference is stored."""
    cell = case.result.cell
    if case.is_first_version or cell.workload_digest not in long_trace.references():
        which = "version 1 of the payload" if case.is_first_version else "this workload"
        return Finding(True, f"{which} has no long trace", {}, checked=False)
    verdict = long_trace.judge(cell, case.workload, case.measured.traces)
    off = verdict.deviation
    numbers = {"verdict": verdict.kind, "deviation": None if off == math.inf else off}
    return Finding(verdict.kind == "conformant", verdict.sentence, numbers)


def wrong_or_doubtful(finding: Finding) -> Effect:
    """A wrong computation unranks; one that could not be compared is a doubt."""
    return "unranked" if finding.figures.get("verdict") == "wrong_result" else "doubtful"
