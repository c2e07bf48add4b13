"""Whether a result brings all the evidence that a current agent sends: what is left out cannot be
wrong. What only was not recomputed is a doubt of the check that compares it."""

from collections.abc import Iterator

from bench_protocol.payload.result import Measured
from bench_protocol.training import loss_by_steps
from bench_protocol.training.reading import parts

from .case import Case
from .verdicts import Finding


def evidence(case: Case) -> Finding:
    """No evidence is left out. A failed repeat may have ended before its evidence was read."""
    if not isinstance(case.result.outcome, Measured):
        return Finding(True, "a failed repeat needs no evidence", {}, checked=False)
    missing = list(_missing(case))
    if not missing:
        return Finding(True, "it has all the evidence that a current agent sends", {})
    return Finding(False, f"a current agent also sends {', '.join(missing)}", {"missing": missing})


def data_digest(case: Case) -> Finding:
    """The data of the session is that of the recomputation: generated or published."""
    digest, recomputed = case.measured.data_digest, case.recomputed
    if digest is None or recomputed is None or recomputed.data_digest is None:
        return Finding(True, "nothing is known of its data", {}, checked=False)
    passed = digest == recomputed.data_digest
    kind = case.result.cell.data
    sentence = f"its data is {'' if passed else 'not '}the {kind} data of the workload"
    return Finding(passed, sentence, {"data_digest": digest})


def _missing(case: Case) -> Iterator[str]:
    measured, cell = case.measured, case.result.cell
    if not case.is_seeded:
        yield "a seed that follows from its nonce"
    if measured.window is None:
        yield "the window of the timed part by the parent's clock"
    if measured.data_digest is None:
        yield "the digest of its data"
    fewest = loss_by_steps.evaluated_samples(case.workload)
    if measured.evaluation is None or measured.evaluation.samples < fewest:
        yield f"its loss on {fewest:,} samples of the test split"
    if measured.witness is None:
        yield "a witness of the timed session"
    if measured.witness is None or case.workload.digest != cell.workload_digest:
        return  # what else it should have is not known
    done = parts(case.workload, cell.batch_size, case.result.seed)
    if len(measured.witness.readings) != len(done):
        yield f"{len(done)} readings of the timed session"
        return
    for part, reading in zip(done, measured.witness.readings, strict=True):
        calls = len(part.calls(measured.blocks.steps_per_block))
        if len(reading.durations_ns) != calls:
            yield f"the times of {calls} calls of its {part.kind} reading"
