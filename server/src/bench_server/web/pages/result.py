"""``/results/{id}``: one result, with its signed payload, traces and telemetry."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from sqlmodel import Session

from bench_protocol import asks, charts, conformance, doubts, recomputation, witness_references
from bench_protocol import format as people
from bench_protocol.matrix import Precision
from bench_protocol.recomputation import JobKey
from bench_protocol.recomputed import Band
from bench_protocol.result import Result, Trace, Warn
from bench_protocol.shows import Statement

from ...answers import queries, witnessed_speeds
from ...answers.types import (
    ReceiptAnswer,
    ReproductionAnswer,
    ResultAnswer,
    receipt_answer,
    result_fields,
    shown_fields,
)
from ...answers.witnessed_speeds import WitnessedSpeedAnswer
from ...db.tables import Measurement, SigningKey
from ...ingest.columns import stored_result
from ...ingest.verdicts import CheckVerdict
from ...log import reader
from ...recompute import jobs
from ...recompute.jobs import Stated
from ..description_lists import (
    Fact,
    condition_facts,
    environment_facts,
    machine_facts,
    training_facts,
)
from ..plots import Plot, Point, Series, plot

UNITS = {"percent": " %", "mhz": " MHz", "celsius": " °C", "watts": " W", "rpm": " rpm"}

# What a failed repeat did, before the workload's name.
FAILURES: Mapping[str, str] = {
    "out_of_memory": "ran out of memory on",
    "timeout": "did not finish in time on",
    "stalled": "stalled on",
    "diverged": "diverged on",
    "wrong_result": "gave a wrong result on",
    "unavailable": "could not run",
    "crashed": "crashed on",
}


@dataclass(frozen=True)
class TraceStep:
    """One step of a conformance trace and its reference; null if a loss is not finite, or if the
    step was not recomputed."""

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
    """A loss of the timed session, the same once it was rewound, and the range of its reference;
    null if it is not finite, was not sent, or if no reference is stored."""

    step: int
    loss: float | None
    again: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class WitnessTable:
    """What the timed session tells of its training. ``counted``: steps, by its own count;
    ``expected``: those of warm-up and timing. ``has_reference``: whether there is one, recomputed
    or stored."""

    steps: tuple[WitnessStep, ...]
    counted: int
    expected: int
    tensors: int
    has_reference: bool


@dataclass(frozen=True)
class ResultPage:
    """``/results/{id}``: how fast was this one repeat, and how can you check it?

    ``found``: what the hardware did, the heading after its name. ``answer`` holds the derived
    columns, ``signed`` what the key signed, ``public_key`` the
    key in base64 (DER SubjectPublicKeyInfo). ``trace`` is null if nothing was measured;
    ``conformance``: the finding on its traces; ``statements``: log entries of what was recomputed;
    ``witness``: of the session that was timed, null in version 1 of the payload. ``telemetry``: one
    plot per sensor. ``disturbances``: its agent's warnings that other programs or heat slowed it;
    ``left_out``: undisturbed results count instead. ``reproduction``: beside other owners, null
    before level 3. ``ask``: the ask that it answers, in words; null if it names none. ``shows``:
    what it shows and what it does not, ``level_in_words``: its trust level, ``level_needs``: what
    the next one needs.
    ``witnessed``: the fastest witnessed speed of its machine with its framework and kind of device.
    """

    title: str
    json_href: str
    envelope_href: str
    image_href: str
    found: str
    answer: ResultAnswer
    signed: Result
    disturbances: tuple[Warn, ...]
    left_out: bool
    reproduction: ReproductionAnswer | None
    ask: str | None
    shows: tuple[Statement, ...]
    level_in_words: str | None
    level_needs: str | None
    trace: charts.BlockTrace | None
    startup: tuple[charts.Segment, ...]
    conformance: CheckVerdict | None
    statements: tuple[int, ...]
    traces: tuple[TraceTable, ...]
    witness: WitnessTable | None
    telemetry: tuple[Plot, ...]
    training: tuple[Fact, ...]
    machine: tuple[Fact, ...]
    environment: tuple[Fact, ...]
    conditions: tuple[Fact, ...]
    public_key: str
    display_name: str | None
    receipt: ReceiptAnswer
    witnessed: WitnessedSpeedAnswer | None


def result_page(session: Session, result_id: str) -> ResultPage:
    """Fill the context. Raises NotFound if there is no such result."""
    submission, row = queries.result_with_id(session, result_id)
    signed = stored_result(submission.payload)
    measured = signed.measurement
    key = session.get_one(SigningKey, submission.key_id)
    receipt = reader.receipts_of_results(session, [submission.id])[submission.id]
    api = f"/api/v1/results/{submission.id}"
    keys = [job.key for job in recomputation.jobs(signed)]
    stated = jobs.stated(session.connection(), keys)
    answer = ResultAnswer(**result_fields(submission, row))
    verdicts = {verdict.check: verdict for verdict in answer.verdicts or ()}
    shown = shown_fields(answer, signed)
    return ResultPage(
        title=f"{row.hardware}, {row.workload}",
        json_href=api,
        envelope_href=f"{api}/envelope",
        image_href=f"/results/{submission.id}/card.png",
        found=_found(answer),
        answer=answer,
        signed=signed,
        disturbances=tuple(doubts.disturbances(signed.warnings)),
        left_out=queries.left_out(session, row),
        reproduction=queries.reproduction_of(session, row),
        ask=_ask(signed, row.ask_id),
        shows=shown["shows"],
        level_in_words=shown["level_words"],
        level_needs=shown["level_needs"],
        trace=charts.block_trace(measured.blocks.durations_ns) if measured else None,
        startup=_startup(signed),
        conformance=verdicts.get("conformance"),
        statements=tuple(sorted(item.log_index for item in stated.values())),
        traces=_traces(signed, stated),
        witness=_witness(signed, stated),
        telemetry=_telemetry(signed),
        training=training_facts(signed),
        machine=machine_facts(signed.machine),
        environment=environment_facts(signed.environment),
        conditions=condition_facts(signed.conditions),
        public_key=base64.b64encode(key.spki).decode(),
        display_name=key.display_name,
        receipt=receipt_answer(receipt),
        witnessed=_fastest(session, row),
    )


def _found(answer: ResultAnswer) -> str:
    """``trains mnist-cnn at 190,219 samples per second``, or how the repeat failed."""
    if answer.samples_per_second:
        rate = people.rate(answer.samples_per_second)
        return f"trains {answer.workload} at {rate} samples per second"
    return f"{FAILURES.get(answer.failure_kind or '', 'has no figure in')} {answer.workload}"


def _ask(signed: Result, ask_id: str | None) -> str | None:
    if signed.asked is None:
        return None
    if ask_id is None:
        return "It names an ask that this server did not draw for it, so it answers none"
    why = next(why for reason, why in asks.WORDS.items() if reason == signed.asked.reason)
    return f"It answers an ask of this server: {why}"


def _fastest(session: Session, row: Measurement) -> WitnessedSpeedAnswer | None:
    """The fastest witnessed speed of the result's machine, framework and kind of device."""
    speeds = witnessed_speeds.of_machine(session, row.machine_id)
    same = [s for s in speeds if (s.framework, s.device) == (row.framework, row.device)]
    return max(same, key=lambda speed: speed.samples_per_second, default=None)


def _startup(signed: Result) -> tuple[charts.Segment, ...]:
    if signed.measurement is None:
        return ()
    startup = signed.measurement.startup
    return charts.segments(
        [
            ("import", startup.import_ns),
            ("data", startup.data_ns),
            ("build", startup.build_ns),
            ("first step", startup.first_step_ns),
        ]
    )


def _traces(signed: Result, stated: Mapping[JobKey, Stated]) -> tuple[TraceTable, ...]:
    """Short traces beside what was recomputed of their seed, or stored for the public one."""
    measured = signed.measurement
    tables = []
    for trace in measured.traces if measured else ():
        if trace.steps:  # the long one has a verdict of its own
            continue
        right = _losses_of(signed, trace, stated)
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


def _losses_of(signed: Result, trace: Trace, stated: Mapping[JobKey, Stated]) -> tuple[float, ...]:
    """What the losses of a trace must be; none where that is not known."""
    found = stated.get(JobKey(trace.seed, trace.batch_size))
    if found is not None and found.statement.figures is not None:
        losses = found.statement.figures.losses
    else:
        right = conformance.references().get((signed.cell.workload_digest, trace.optimizer))
        losses = right.losses if right is not None and right.seed == trace.seed else ()
    return losses if len(losses) == len(trace.losses) else ()


def _witness(signed: Result, stated: Mapping[JobKey, Stated]) -> WitnessTable | None:
    """Losses of the timed session beside their reference."""
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
        has_reference=band is not None,
    )


def _band(signed: Result, stated: Mapping[JobKey, Stated]) -> Band | None:
    found = stated.get(JobKey(signed.seed, signed.cell.batch_size, signed.cell.data))
    if found is not None and found.statement.figures is not None:
        return found.statement.figures.band
    reference = witness_references.reference_of(signed)
    return None if reference is None else reference.band


def _telemetry(signed: Result) -> tuple[Plot, ...]:
    """A plot for each sensor with values, except bit sets."""
    plots = []
    for sensor, column in signed.telemetry.columns.items():
        pairs = zip(signed.telemetry.at_ns, column, strict=True)
        values = [(at / 1e9, value) for at, value in pairs if value is not None]
        if values and not sensor.endswith("_bits"):
            plots.append(_sensor(sensor, values))
    return tuple(plots)


def _sensor(sensor: str, values: list[tuple[float, float]]) -> Plot:
    name, _, unit = sensor.rpartition("_")

    def words(value: float) -> str:
        return people.size(int(value)) if unit == "bytes" else f"{value:,.4g}{UNITS.get(unit, '')}"

    points = tuple(Point(at, value, f"{words(value)} at {at:.0f} s") for at, value in values)
    return plot(
        name.replace("_", " ").replace("cpu", "CPU").replace("gpu", "GPU"),
        [Series(sensor, points)],
        x_words=lambda seconds: f"{seconds:.0f} s",
        y_words=words,
        y_zero=unit == "percent",
    )
