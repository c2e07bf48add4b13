"""Whether a result brings all the evidence that a current agent sends.

Evidence that is left out cannot be wrong. What only could not be compared, because it was not
recomputed, is a doubt of the check that compares it.
"""

from collections.abc import Iterator

from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measured, Trace
from bench_protocol.payload.witness import Witness, trained_tensors
from bench_protocol.training import conformance
from bench_protocol.training.witness_steps import witness_steps

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
    digest, said = case.measured.data_digest, case.recomputation("timed")
    if digest is None or said is None or said.data_digest is None:
        return Finding(True, "nothing is known of its data", {}, checked=False)
    passed = digest == said.data_digest
    kind = case.result.cell.data
    sentence = f"its data is {'' if passed else 'not '}the {kind} data of the workload"
    return Finding(passed, sentence, {"data_digest": digest})


def _missing(case: Case) -> Iterator[str]:
    measured, cell = case.measured, case.result.cell
    if not case.is_seeded:
        yield "seeds that follow from its nonce"
    if measured.window is None:
        yield "the window of the timed part by the parent's clock"
    if measured.data_digest is None:
        yield "the digest of its data"
    if measured.witness is None:
        yield "a witness of the timed session"
    if case.workload.digest != cell.workload_digest:
        return  # what else it should have is not known
    if measured.witness is not None:
        yield from missing_readings(case.workload, cell.batch_size, measured.witness)
    short = {
        (trace.precision or cell.precision, trace.optimizer)
        for trace in measured.traces
        if not trace.steps
    }
    for precision in conformance.traced_precisions(cell.precision):
        for optimizer in conformance.TRACED:
            if (precision, optimizer) not in short:
                yield f"a trace under {_named(optimizer)} in {precision}"
    if conformance.is_long_traced(case.workload) and not _long(measured.traces):
        yield "a long trace"


def missing_readings(workload: Workload, batch_size: int, told: Witness) -> Iterator[str]:
    """The members of a whole witness that this one lacks."""
    steps = witness_steps(workload, batch_size)
    if told.steps != steps:
        yield f"its losses after steps {', '.join(map(str, steps))}"
    if not told.movements and any(True for _ in trained_tensors(workload)):
        yield "how far its weights moved"
    if not told.masks and any(isinstance(layer, Dropout) for layer in workload.layers):
        yield "its dropout masks"
    if told.rewound is None:
        yield "the losses of the rewound session"
    elif told.movements and not told.rewound.movements:
        yield "how far the rewound session's weights moved"


def _long(traces: tuple[Trace, ...]) -> list[Trace]:
    return [trace for trace in traces if trace.steps and trace.movements]


def _named(optimizer: str) -> str:
    return "SGD" if optimizer == "sgd" else "the workload's optimiser"
