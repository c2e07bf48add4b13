"""Checks of what was trained: the model, its loss and its accuracy."""

from bench_protocol.training import accuracy, loss_by_steps

from .case import Case
from .verdicts import Effect, Finding


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
    """The loss on the test split is in the range that honest trainings of the same length reach."""
    blocks, evaluation = case.measured.blocks, case.measured.evaluation
    steps = 1 + blocks.warm_up_steps + blocks.steps
    verdict = loss_by_steps.judge(case.result.cell, case.workload, steps, evaluation)
    return Finding(
        verdict.verdict != "outside",
        verdict.sentence,
        {
            "loss": evaluation.loss if evaluation else None,
            "steps": steps,
            "lowest": verdict.lowest,
            "highest": verdict.highest,
        },
        checked=verdict.verdict != "unchecked",
    )


def falling_loss_effect(finding: Finding) -> Effect:
    """A loss as far outside of its range as half of the range is wide, or more, is no training of
    this length; nearer ones are a doubt."""
    loss, low, high = (finding.figures.get(name) for name in ("loss", "lowest", "highest"))
    if not (isinstance(loss, float) and isinstance(low, float) and isinstance(high, float)):
        return "doubtful"
    outside = max(low - loss, loss - high)
    return "unranked" if outside > (high - low) / 2 else "doubtful"


def right_accuracy(case: Case) -> Finding:
    """Accuracy after full epochs lies in its band; without band or full epochs it passes."""
    found = accuracy.judge(case.workload, case.measured, case.result.cell.batch_size)
    return Finding(
        found.verdict != "diverged",
        found.sentence,
        {"verdict": found.verdict},
        checked=found.verdict != "accuracy_unchecked",
    )
