"""Losses of a result beside their recomputation: its conformance traces, its timed session."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from sqlmodel import Session

from bench_protocol.catalogue.matrix import Precision
from bench_protocol.payload.result import Result, Trace
from bench_protocol.training import conformance, recomputation
from bench_protocol.training.recomputation import JobKey
from bench_protocol.training.recomputed import Band

from ...answers.types.results import ResultAnswer
from ...checks.verdicts import CheckVerdict
from ...recompute import jobs
from ...recompute.jobs import Stated


@dataclass(frozen=True)
class TraceStep:
    """One step of a conformance trace and its recomputation; null if a loss is not finite, or if
    the step was not recomputed."""

    step: int
    loss: float | None
    reference: float | None
    deviation: float | None


@dataclass(frozen=True)
class TraceTable:
    """A conformance trace: optimiser, precision and steps."""

    optimizer: str
    precision: Precision
    steps: tuple[TraceStep, ...]


@dataclass(frozen=True)
class WitnessStep:
    """A loss of the timed session, the same once it was rewound, and its recomputed range; null if
    it is not finite, was not sent or was not recomputed."""

    step: int
    loss: float | None
    again: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class WitnessTable:
    """What the timed session tells of its training. ``counted``: steps, by its own count;
    ``expected``: those of warm-up and timing. ``is_recomputed``: whether its losses were."""

    steps: tuple[WitnessStep, ...]
    counted: int
    expected: int
    tensors: int
    is_recomputed: bool


@dataclass(frozen=True)
class Losses:
    """The losses of its training. ``conformance``: the finding on its ``traces``; ``logged``: the
    log entries of what was recomputed; ``witness``: of the session that was timed."""

    conformance: CheckVerdict | None
    logged: tuple[int, ...]
    traces: tuple[TraceTable, ...]
    witness: WitnessTable | None


def losses_of(session: Session, answer: ResultAnswer, signed: Result) -> Losses:
    verdicts = {verdict.check: verdict for verdict in answer.verdicts or ()}
    keys = [job.key for job in recomputation.jobs(signed)]
    stated = jobs.stated(session.connection(), keys)
    return Losses(
        conformance=verdicts.get("conformance"),
        logged=tuple(sorted(item.log_index for item in stated.values())),
        traces=_trace_tables(signed, stated),
        witness=_witness_table(signed, stated),
    )


def _trace_tables(signed: Result, stated: Mapping[JobKey, Stated]) -> tuple[TraceTable, ...]:
    """Short traces beside what was recomputed of their seed."""
    measured = signed.measurement
    tables = []
    for trace in measured.traces if measured else ():
        if trace.steps:  # the long one has a verdict of its own
            continue
        right = _losses_of(trace, stated)
        off = conformance.deviations(trace.losses, right) if right else ()
        steps = (
            TraceStep(number, loss, reference, None if loss is None else deviation)
            for number, (loss, reference, deviation) in enumerate(
                zip_longest(trace.losses, right, off), 1
            )
        )
        precision = trace.precision or signed.cell.precision
        tables.append(TraceTable(trace.optimizer, precision, tuple(steps)))
    return tuple(tables)


def _losses_of(trace: Trace, stated: Mapping[JobKey, Stated]) -> tuple[float, ...]:
    """The recomputed losses of a trace; none where they are not known."""
    found = stated.get(JobKey(trace.seed, trace.batch_size))
    if found is None or found.said.figures is None:
        return ()
    losses = found.said.figures.losses
    return losses if len(losses) == len(trace.losses) else ()


def _witness_table(signed: Result, stated: Mapping[JobKey, Stated]) -> WitnessTable | None:
    """Losses of the timed session beside their recomputed range."""
    measured = signed.measurement
    if measured is None or measured.witness is None:
        return None
    recorded, blocks = measured.witness, measured.blocks
    band = _band(signed, stated)
    again = recorded.rewound.losses if recorded.rewound else (None,) * len(recorded.steps)
    ranges: list[tuple[float, float]] = []
    if band is not None:
        ranges = list(zip(band.low.losses, band.high.losses, strict=True))
    return WitnessTable(
        tuple(
            WitnessStep(step, *read, *(ranges[step - 1] if step <= len(ranges) else (None, None)))
            for step, *read in zip(recorded.steps, recorded.losses, again, strict=True)
        ),
        counted=recorded.step_count,
        expected=1 + blocks.warm_up_steps + blocks.steps,
        tensors=len(recorded.movements),
        is_recomputed=band is not None,
    )


def _band(signed: Result, stated: Mapping[JobKey, Stated]) -> Band | None:
    found = stated.get(JobKey(signed.seed, signed.cell.batch_size, signed.cell.data))
    if found is None or found.said.figures is None:
        return None
    return found.said.figures.band
