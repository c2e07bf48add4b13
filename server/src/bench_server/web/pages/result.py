"""``/results/{id}``: one result, with its signed payload, traces and telemetry."""

import base64
from dataclasses import dataclass

from sqlmodel import Session

from bench_protocol import charts, conformance, doubts, witness_references
from bench_protocol import format as people
from bench_protocol.matrix import Precision
from bench_protocol.result import Result, Warn

from ...answers import queries
from ...answers.types import ReceiptAnswer, ResultAnswer, receipt_answer, result_fields
from ...db.tables import SigningKey
from ...ingest.columns import stored_result
from ...log import reader
from ..description_lists import (
    Fact,
    condition_facts,
    environment_facts,
    machine_facts,
    training_facts,
)
from ..plots import Plot, Point, Series, plot

UNITS = {"percent": " %", "mhz": " MHz", "celsius": " °C", "watts": " W", "rpm": " rpm"}


@dataclass(frozen=True)
class TraceStep:
    """One step of a conformance trace and its reference; null if a loss is not finite."""

    step: int
    loss: float | None
    reference: float
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
    ``expected``: those of warm-up and timing. ``has_reference``: whether one is stored."""

    steps: tuple[WitnessStep, ...]
    counted: int
    expected: int
    tensors: int
    has_reference: bool


@dataclass(frozen=True)
class ResultPage:
    """``/results/{id}``: how fast was this one repeat, and how can you check it?

    ``answer`` holds the derived columns, ``signed`` what the key signed, ``public_key`` the
    key in base64 (DER SubjectPublicKeyInfo). ``trace`` is null if nothing was measured;
    ``conformance``: the verdict on its traces; ``witness``: of the session that was timed, null in
    version 1 of the payload. ``telemetry``: one plot per sensor. ``disturbances``: its agent's
    warnings that other programs or heat slowed it; ``left_out``: undisturbed results count instead.
    """

    title: str
    json_href: str
    envelope_href: str
    image_href: str
    answer: ResultAnswer
    signed: Result
    disturbances: tuple[Warn, ...]
    left_out: bool
    trace: charts.BlockTrace | None
    startup: tuple[charts.Segment, ...]
    conformance: conformance.ConformanceVerdict | None
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


def result_page(session: Session, result_id: str) -> ResultPage:
    """Fill the context. Raises NotFound if there is no such result."""
    submission, row = queries.result_with_id(session, result_id)
    signed = stored_result(submission.payload)
    measured = signed.measurement
    key = session.get_one(SigningKey, submission.key_id)
    receipt = reader.receipts_of_results(session, [submission.id])[submission.id]
    api = f"/api/v1/results/{submission.id}"
    return ResultPage(
        title=f"{row.hardware}, {row.workload}",
        json_href=api,
        envelope_href=f"{api}/envelope",
        image_href=f"/results/{submission.id}/card.png",
        answer=ResultAnswer(**result_fields(submission, row)),
        signed=signed,
        disturbances=tuple(doubts.disturbances(signed.warnings)),
        left_out=queries.left_out(session, row),
        trace=charts.block_trace(measured.blocks.durations_ns) if measured else None,
        startup=_startup(signed),
        conformance=_conformance(signed),
        traces=_traces(signed),
        witness=_witness(signed),
        telemetry=_telemetry(signed),
        training=training_facts(signed),
        machine=machine_facts(signed.machine),
        environment=environment_facts(signed.environment),
        conditions=condition_facts(signed.conditions),
        public_key=base64.b64encode(key.spki).decode(),
        display_name=key.display_name,
        receipt=receipt_answer(receipt),
    )


def _conformance(signed: Result) -> conformance.ConformanceVerdict | None:
    if signed.measurement is None:
        return None
    architecture = signed.machine.cpu.architecture
    return conformance.verdict(signed.cell, signed.measurement.traces, architecture=architecture)


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


def _traces(signed: Result) -> tuple[TraceTable, ...]:
    """Traces of the reference's job, compared with it step by step."""
    measured, references = signed.measurement, conformance.references()
    tables = []
    for trace in measured.traces if measured else ():
        if trace.steps:  # the long one has a verdict of its own
            continue
        right = references.get((signed.cell.workload_digest, trace.optimizer))
        if right is None or len(trace.losses) != len(right.losses):
            continue
        off = conformance.deviations(trace.losses, right.losses)
        steps = (
            TraceStep(number, loss, reference, None if loss is None else deviation)
            for number, (loss, reference, deviation) in enumerate(
                zip(trace.losses, right.losses, off, strict=True), 1
            )
        )
        precision = trace.precision or signed.cell.precision
        tables.append(TraceTable(trace.optimizer, precision, tuple(steps)))
    return tuple(tables)


def _witness(signed: Result) -> WitnessTable | None:
    """Losses of the timed session beside their reference."""
    measured = signed.measurement
    if measured is None or measured.witness is None:
        return None
    told, blocks = measured.witness, measured.blocks
    reference = witness_references.reference_of(signed)
    again = told.rewound.losses if told.rewound else (None,) * len(told.steps)
    ranges: list[tuple[float, float]] = []
    if reference is not None:
        ranges = list(zip(reference.low, reference.band.high.losses, strict=True))
    return WitnessTable(
        tuple(
            WitnessStep(step, *read, *(ranges[step - 1] if step <= len(ranges) else (None, None)))
            for step, *read in zip(told.steps, told.losses, again, strict=True)
        ),
        counted=told.step_count,
        expected=1 + blocks.warm_up_steps + blocks.steps,
        tensors=len(told.movements),
        has_reference=reference is not None,
    )


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
