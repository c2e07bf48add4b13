"""``/results/{id}``: one result, with its signed payload, traces and telemetry."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.payload import doubts
from bench_protocol.payload.result import Result, Warn
from bench_protocol.statistics import charts
from bench_protocol.training import recomputation
from bench_protocol.trust import asks
from bench_protocol.trust.shows import Check, Statement, Status

from ...answers import stored_results
from ...answers.types import (
    ReceiptAnswer,
    ReproductionAnswer,
    ResultAnswer,
    receipt_answer,
    result_fields,
    shown_fields,
)
from ...checks.verdicts import CheckVerdict
from ...db.tables import SigningKey
from ...ingest.columns import stored_result
from ...log import reader
from ...recompute import jobs
from ..description_lists import (
    Fact,
    condition_facts,
    environment_facts,
    machine_facts,
    training_facts,
)
from ..plots import Plot, Point, Series, plot
from .result_losses import TraceTable, WitnessTable, trace_tables, witness_table

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
# The class of a check in the list, and its word.
MARKS: Mapping[Status, tuple[str, str]] = {
    "holds": ("passed", "Passed"),
    "does_not_hold": ("failed", "Failed"),
    "not_checked": ("unchecked", "Not checked"),
    "pending": ("warned", "Not shown"),
}


class CheckMark(NamedTuple):
    """One line of the list of checks: its class, a word for the class, the finding."""

    css: str
    words: str
    sentence: str


@dataclass(frozen=True)
class ResultPage:
    """``/results/{id}``: how fast was this one repeat, and how can you check it?

    ``found``: what the hardware did, the heading after its name. ``answer`` holds the derived
    columns, ``signed`` what the key signed, ``public_key`` the
    key in base64 (DER SubjectPublicKeyInfo). ``trace`` is null if nothing was measured;
    ``conformance``: the finding on its traces; ``statements``: log entries of what was recomputed;
    ``witness``: of the session that was timed. ``telemetry``: one
    plot per sensor. ``disturbances``: its agent's warnings that other programs or heat slowed it;
    ``left_out``: undisturbed results count instead. ``reproduction``: beside other owners, null
    before level 3. ``ask``: the ask that it answers, in words; null if it names none. ``shows``:
    what it shows and what it does not, ``level_in_words``: its trust level, ``level_needs``: what
    the next one needs.
    ``checks``: its checks, as marked in the list of them.
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
    checks: tuple[CheckMark, ...]
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


def result_page(session: Session, result_id: str) -> ResultPage:
    """Fill the context. Raises NotFound if there is no such result."""
    submission, row = stored_results.result_with_id(session, result_id)
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
        left_out=stored_results.left_out(session, row),
        reproduction=stored_results.reproduction_of(session, row),
        ask=_ask(signed, row.ask_id),
        shows=shown["shows"],
        level_in_words=shown["level_words"],
        level_needs=shown["level_needs"],
        checks=tuple(map(_mark, answer.verdicts or ())),
        trace=charts.block_trace(measured.blocks.durations_ns) if measured else None,
        startup=_startup(signed),
        conformance=verdicts.get("conformance"),
        statements=tuple(sorted(item.log_index for item in stated.values())),
        traces=trace_tables(signed, stated),
        witness=witness_table(signed, stated),
        telemetry=_telemetry(signed),
        training=training_facts(signed),
        machine=machine_facts(signed.machine),
        environment=environment_facts(signed.environment),
        conditions=condition_facts(signed.conditions),
        public_key=base64.b64encode(key.spki).decode(),
        display_name=key.display_name,
        receipt=receipt_answer(receipt),
    )


def _mark(verdict: CheckVerdict) -> CheckMark:
    """A check that failed and only lowers the trust level is a warning."""
    status = Check.of(vars(verdict)).status
    if status == "does_not_hold" and verdict.effect in ("stale", "doubtful"):
        return CheckMark("warned", "Not shown", verdict.sentence)
    return CheckMark(*MARKS[status], verdict.sentence)


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
