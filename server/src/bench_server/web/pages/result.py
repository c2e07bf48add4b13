"""``/results/{id}``: one result, with its signed payload, readings and telemetry."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.payload import doubts
from bench_protocol.payload.result import Result, Warn
from bench_protocol.statistics import charts

from ...answers import stored_figures, stored_results
from ...answers.types.results import ResultAnswer, result_fields
from ...answers.types.trust import ReceiptAnswer, receipt_answer
from ...db.tables import SigningKey, Submission
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
from .common import Page
from .result_readings import Readings, readings_of
from .result_trust import Trust, trust_of

UNITS = {"percent": " %", "mhz": " MHz", "celsius": " °C", "watts": " W", "rpm": " rpm"}

# Verb of a failed repeat, before the workload's name.
FAILURES: Mapping[str, str] = {
    "out_of_memory": "ran out of memory on",
    "timeout": "did not finish in time on",
    "stalled": "stalled on",
    "diverged": "diverged on",
    "wrong_result": "gave a wrong result on",
    "unavailable": "could not run",
    "crashed": "crashed on",
    "too_busy": "was too busy to measure",
}


# ``left out``: undisturbed results of its set-up count; ``held``: the figure of its set-up is.
Standing = Literal["counts", "left out", "held"]


@dataclass(frozen=True)
class Description:
    """What was trained, where and with what; ``conditions``: the machine's state just before."""

    training: tuple[Fact, ...]
    machine: tuple[Fact, ...]
    environment: tuple[Fact, ...]
    conditions: tuple[Fact, ...]


@dataclass(frozen=True)
class Signature:
    """``public_key`` in base64 (DER SubjectPublicKeyInfo)."""

    public_key: str
    owner: str
    envelope_href: str
    receipt: ReceiptAnswer


@dataclass(frozen=True)
class ResultPage(Page):
    """``/results/{id}``: how fast was this one repeat, and how can you check it? ``answer`` holds
    derived columns, ``signed`` what the key signed. ``standing``: how its set-up's
    figure takes it."""

    image_href: str
    found: str
    answer: ResultAnswer
    signed: Result
    disturbances: tuple[Warn, ...]
    standing: Standing
    trace: charts.BlockTrace | None
    startup: tuple[charts.Segment, ...]
    telemetry: tuple[Plot, ...]
    trust: Trust
    readings: Readings | None
    description: Description
    signature: Signature


def result_page(session: Session, result_id: str) -> ResultPage:
    """Fill the context. Raises NotFound if there is no such result."""
    submission, row = stored_results.result_with_id(session, result_id)
    signed = stored_result(submission.payload)
    measured = signed.measurement
    answer = ResultAnswer(**result_fields(submission, row))
    return ResultPage(
        title=f"{row.hardware}, {row.workload}",
        json_href=f"/api/v1/results/{submission.id}",
        image_href=f"/results/{submission.id}/card.png",
        found=_found(answer),
        answer=answer,
        signed=signed,
        disturbances=tuple(doubts.disturbances(signed.warnings)),
        standing=_standing(session, row),
        trace=charts.block_trace(measured.blocks.durations_ns) if measured else None,
        startup=_startup(signed),
        telemetry=_telemetry(signed),
        trust=trust_of(session, row, answer, signed),
        readings=readings_of(session, answer, signed),
        description=Description(
            training=training_facts(signed),
            machine=machine_facts(signed.machine),
            environment=environment_facts(signed.environment),
            conditions=condition_facts(signed.conditions),
        ),
        signature=_signature(session, submission),
    )


def _standing(session: Session, row: Any) -> Standing:
    if stored_results.left_out(session, row):
        return "left out"
    return "counts" if stored_figures.free(session, [row]) else "held"


def _signature(session: Session, submission: Submission) -> Signature:
    key = session.get_one(SigningKey, submission.key_id)
    receipt = reader.receipts_of_results(session, [submission.id])[submission.id]
    return Signature(
        public_key=base64.b64encode(key.spki).decode(),
        owner=key.owner,
        envelope_href=f"/api/v1/results/{submission.id}/envelope",
        receipt=receipt_answer(receipt),
    )


def _found(answer: ResultAnswer) -> str:
    """``trains mnist-cnn at 190,219 samples/s``, or how the repeat failed."""
    if answer.samples_per_second:
        speed = speeds.words(answer.samples_per_second, answer.workload)
        return f"trains {answer.workload} at {speed}"
    return f"{FAILURES.get(answer.failure_kind or '', 'has no figure in')} {answer.workload}"


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
