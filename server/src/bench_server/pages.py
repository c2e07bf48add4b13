"""The contexts of the pages: a documented frozen dataclass each, filled by one function.

``json_href`` is the address of the JSON twin, which holds the same answer.
"""

import base64
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from sqlmodel import Session

from bench_protocol import charts
from bench_protocol.catalogue import CATALOGUE
from bench_protocol.result import Result

from . import boards, comparing, queries, records
from .answers import Board, LogAnswer, ResultAnswer, result_fields
from .authority import Authority
from .derive import stored_result
from .facts import Fact, condition_facts, environment_facts, machine_facts, training_facts
from .filters import BoardFilters
from .tables import SigningKey

ROWS_WITH_ALL_WORKLOADS = 15


@dataclass(frozen=True)
class Choice:
    """An option of a form's field or a link: its value, its words, and whether it is in force."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True)
class LeaderboardPage:
    """``/``: how fast does hardware train? ``narrowed``: a filter is in force. ``boxes``: the page
    lists two different things or more that can be ticked and compared."""

    title: str
    json_href: str
    filters: BoardFilters
    boards: tuple[Board, ...]
    rows_shown: int
    workloads: tuple[Choice, ...]
    groups: tuple[Choice, ...]
    frameworks: tuple[str, ...]
    narrowed: bool
    any_results: bool
    boxes: bool


@dataclass(frozen=True)
class LogPage:
    """``/log``: how large is the log, what has it signed, and how is it verified? ``address``: this
    server's, as the browser knows it."""

    title: str
    json_href: str
    log: LogAnswer
    address: str


@dataclass(frozen=True)
class ResultPage:
    """``/results/{id}``: what was measured here, and how can it be checked?

    ``answer`` holds the derived columns, ``signed`` what the key signed, ``public_key`` the
    key in base64 (DER SubjectPublicKeyInfo). ``trace`` is null where nothing was measured.
    """

    title: str
    json_href: str
    envelope_href: str
    answer: ResultAnswer
    signed: Result
    trace: charts.BlockTrace | None
    startup: tuple[charts.Part, ...]
    training: tuple[Fact, ...]
    machine: tuple[Fact, ...]
    environment: tuple[Fact, ...]
    conditions: tuple[Fact, ...]
    public_key: str
    display_name: str | None


@dataclass(frozen=True)
class ComparePage:
    """``/compare``: which is faster, and is that certain? ``answer`` is null before choosing,
    ``too_few`` says that less than two different things were chosen."""

    title: str
    json_href: str | None
    answer: comparing.CompareAnswer | None
    hardware: tuple[Choice, ...]
    too_few: bool


@dataclass(frozen=True)
class Operation:
    """One operation of the API. ``parameters``: name, place, type, description."""

    method: str
    path: str
    summary: str
    parameters: tuple[tuple[str, str, str, str], ...]
    statuses: tuple[str, ...]


@dataclass(frozen=True)
class DocsPage:
    """``/docs``: what can the API be asked?"""

    title: str
    json_href: str
    groups: tuple[tuple[str, tuple[Operation, ...]], ...]


def leaderboard_page(session: Session, filters: BoardFilters) -> LeaderboardPage:
    shown = boards.leaderboard(session, filters)
    chosen = filters.model_dump(exclude_defaults=True)
    most = 10**6 if filters.workload else ROWS_WITH_ALL_WORKLOADS
    rows = [row for board in shown for row in board.rows[:most]]
    if filters.group == "setup":
        tickable = {row.result_id for row in rows}
    else:
        tickable = {row.hardware_slug for row in rows}
    names = [("", "All workloads"), *((workload.name, workload.name) for workload in CATALOGUE)]
    return LeaderboardPage(
        title=filters.workload or "Leaderboard",
        json_href=_address("/api/v1/leaderboard", chosen),
        filters=filters,
        boards=shown,
        rows_shown=most,
        workloads=tuple(
            Choice(_with(chosen, "workload", name), label, (filters.workload or "") == name)
            for name, label in names
        ),
        groups=tuple(
            Choice(_with(chosen, "group", value), label, (filters.group == "setup") == bool(value))
            for value, label in (("", "Best of each hardware"), ("setup", "Every set-up"))
        ),
        frameworks=tuple(queries.frameworks(session)),
        narrowed=bool(chosen.keys() - {"workload", "group", "baseline", "sort", "limit"}),
        any_results=any(board.rows or board.unranked for board in shown),
        boxes=len(tickable) > 1,
    )


def result_page(session: Session, result_id: str) -> ResultPage:
    """Raises NotFound where there is no such result."""
    submission, row = queries.result_with_id(session, result_id)
    signed = stored_result(submission.payload)
    measured = signed.measurement
    key = session.get_one(SigningKey, submission.key_id)
    startup = measured.startup if measured else None
    phases = (
        [
            ("import", startup.import_ns),
            ("data", startup.data_ns),
            ("build", startup.build_ns),
            ("first step", startup.first_step_ns),
        ]
        if startup
        else []
    )
    return ResultPage(
        title=f"{row.hardware}, {row.workload}",
        json_href=f"/api/v1/results/{submission.id}",
        envelope_href=f"/api/v1/results/{submission.id}/envelope",
        answer=ResultAnswer(**result_fields(submission, row)),
        signed=signed,
        trace=charts.block_trace(measured.blocks.durations_ns) if measured else None,
        startup=charts.parts(phases),
        training=training_facts(signed),
        machine=machine_facts(signed.machine),
        environment=environment_facts(signed.environment),
        conditions=condition_facts(signed.conditions),
        public_key=base64.b64encode(key.spki).decode(),
        display_name=key.display_name,
    )


def log_page(session: Session, authority: Authority, license: str, address: str) -> LogPage:
    state = records.state(session, authority, license)
    return LogPage("The log", "/api/v1/log", state, address)


def compare_page(session: Session, ids: tuple[str, ...]) -> ComparePage:
    """Raises NotFound where one of the ids is nothing that can be compared."""
    hardware = tuple(
        Choice(slug, name, slug in ids) for slug, name in queries.ranked_hardware(session)
    )
    if len(ids) < 2:
        return ComparePage("Compare", None, None, hardware, too_few=bool(ids))
    answer = comparing.compare(session, ids)
    names = " and ".join(thing.name for thing in answer.things[:2])
    more = len(answer.things) - 2
    title = f"{names} and {more} more" if more > 0 else names
    json_href = _address("/api/v1/compare", {"ids": ",".join(ids)})
    return ComparePage(title, json_href, answer, hardware, too_few=False)


def docs_page(openapi: dict[str, Any]) -> DocsPage:
    groups: dict[str, list[Operation]] = {}
    for path, methods in openapi["paths"].items():
        for method, spec in methods.items():
            parameters = tuple(
                (p["name"], p["in"], _type(p["schema"]), p.get("description", ""))
                for p in spec.get("parameters", ())
            )
            operation = Operation(
                method.upper(), path, spec["summary"], parameters, tuple(sorted(spec["responses"]))
            )
            groups.setdefault(spec["tags"][0], []).append(operation)
    return DocsPage(
        "API", "/openapi.json", tuple((tag, tuple(found)) for tag, found in groups.items())
    )


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words: ``cpu | cuda | metal``, ``integer``."""
    if "anyOf" in schema:
        words = [_type(option) for option in schema["anyOf"] if option.get("type") != "null"]
        return " | ".join(dict.fromkeys(words))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    return str(schema.get("const") or schema.get("type") or "any")


def _address(path: str, parameters: dict[str, Any]) -> str:
    return f"{path}?{urlencode(parameters)}" if parameters else path


def _with(chosen: dict[str, Any], name: str, value: str) -> str:
    """The address of this page with one parameter changed."""
    kept = {key: item for key, item in chosen.items() if key != name}
    return _address("/", kept | ({name: value} if value else {}))
