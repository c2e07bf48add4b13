"""Fills a migrated database with results, past the server: a million in minutes.

Projected tables are as the projector makes them: measurements by its own functions from one result
for each kind of hardware and cell, figures by :func:`bench_server.ranking.medians.combine`. The log
has every node. Two things are stand-ins that no measured request reads: a payload is only its
number (:mod:`.sizes` stores whole ones), and signatures are zeros.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from math import log
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlalchemy import Table
from sqlmodel import SQLModel
from tests.fakes import results

from bench_protocol.payload import statement
from bench_protocol.payload.result import Result
from bench_protocol.signing import merkle
from bench_protocol.signing.receipts import Checkpoint
from bench_server.checks import submission as submission_checks
from bench_server.checks import table as result_checks
from bench_server.db.environments import environment_row
from bench_server.db.store import Store
from bench_server.db.tables import (
    Aggregate,
    EnvironmentRow,
    LogCheckpoint,
    LogEntry,
    LogNode,
    Measurement,
    Owner,
    Projection,
    SigningKey,
    Submission,
    table_of,
)
from bench_server.ingest import columns
from bench_server.ingest.inbox import new_id
from bench_server.log.server_keys import Authority
from bench_server.projection import measurements, outliers
from bench_server.ranking import rows as aggregate_rows
from bench_server.ranking.figures import Figure, Subject, at_level
from bench_server.ranking.medians import Children, combine
from bench_server.ranking.rows import LEVELS

from . import world
from .bulk import Bulk, bulk

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
MACHINES_AT_ONCE = 200
# Columns that grow with the time of a step, those that shrink, and its logarithms.
TIMES = ("epoch_ns", "ns_per_sample", "fastest_ns", "slowest_ns")
TIMES += ("joules_per_sample", "machines_fastest_ns", "machines_slowest_ns")
RATES = ("samples_per_second",)
LOGARITHMS = ("value_log_mean",)
Row = list[Any]


class Shape:
    """A table's columns: where each stands in a row, and which follow the time of a step."""

    def __init__(self, model: type[SQLModel]) -> None:
        self.table: Table = table_of(model)
        self.names = [column.name for column in self.table.columns]
        self.place = {name: number for number, name in enumerate(self.names)}
        self.times, self.rates, self.logarithms = (
            [self.place[name] for name in names if name in self.place]
            for names in (TIMES, RATES, LOGARITHMS)
        )

    def row(self, values: Mapping[str, Any]) -> Row:
        return [values.get(name) for name in self.names]

    def changed(self, row: Row, factor: float, values: Mapping[str, Any]) -> Row:
        """A row where all takes longer by this factor, and with other values."""
        row, by = row.copy(), log(factor)
        for place in self.times:
            if row[place] is not None:
                row[place] = type(row[place])(row[place] * factor)
        for place in self.rates:
            if row[place] is not None:
                row[place] /= factor
        for place in self.logarithms:
            row[place] += by
        for name, value in values.items():
            row[self.place[name]] = value
        return row


SHAPES = tuple(
    Shape(model)
    for model in (
        *(Owner, SigningKey, Submission, EnvironmentRow, Measurement),
        *(LogEntry, LogNode, LogCheckpoint, Aggregate, Projection),
    )
)
OWNERS, KEYS, SUBMISSIONS, ENVIRONMENTS, MEASUREMENTS = SHAPES[:5]
ENTRIES, NODES, CHECKPOINTS, AGGREGATES, PROJECTION = SHAPES[5:]


def seed(store: Store, authority: Authority, count: int) -> int:
    """Keep at least ``count`` results, in whole runs, in an empty log; returns their number."""
    machines = -(-count // world.RUN)
    with bulk(store.engine, [shape.table for shape in SHAPES]) as into:
        seeding = Seeding(into)
        for number in range(machines):
            seeding.machine(number)
            if number % MACHINES_AT_ONCE == MACHINES_AT_ONCE - 1:
                seeding.write()
        seeding.finish(authority)
    return machines * world.RUN


class Seeding:
    """Rows that wait to be written, and what the whole needs at its end."""

    def __init__(self, into: Bulk) -> None:
        self.into = into
        self.waiting: dict[Shape, list[Row]] = {shape: [] for shape in SHAPES}
        self.owners: dict[Subject, list[Figure]] = defaultdict(list)
        self.frontier = merkle.Frontier()

    def machine(self, number: int) -> None:
        """One machine with its key, its owner, its run, and the figures of these."""
        kind = number % world.KINDS
        key_id = hashlib.sha256(b"seeded %d" % number).hexdigest()
        machine_id = measurements.machine_id(key_id, f"{number + 1:064x}")
        owner = f"seeded-{number}"
        self._add(OWNERS, label=owner, confirmed=False, established=False, origin="")
        self._add(
            KEYS, key_id=key_id, spki=bytes(44), status="active", owner=owner,
            first_key_id=key_id, enrolled_at=BEGAN,
        )  # fmt: skip
        for cell, of_cell in enumerate(_templates(kind)):
            slower = world.step_ns(number, cell, 0) / world.step_ns(kind, cell, 0)
            subject = of_cell.subject._replace(
                owner=owner, machine_id=machine_id, run_id=key_id[:32]
            )
            whose = {
                "key_id": key_id,
                "run_id": key_id[:32],
                "owner": owner,
                "machine_id": machine_id,
                "run_aggregate": subject.id,
            }
            ids = [self._result(row, slower, whose) for row in of_cell.rows]
            if of_cell.figures:
                self._figures(of_cell, slower, subject, ids)

    def write(self) -> None:
        """Write what waits, and forget it."""
        for shape, rows in self.waiting.items():
            self.into.insert(shape.table, rows)
            rows.clear()

    def finish(self, authority: Authority) -> None:
        """The figures of hardware, the environments, and the log's checkpoint."""
        for subject, owners in self.owners.items():
            figure = combine(Children.of(owners), "hardware", subject)
            self._add(AGGREGATES, **aggregate_rows.aggregate_columns("hardware", figure))
        for row in {
            row.id: row for kind in range(world.KINDS) for row in _environments(kind)
        }.values():
            self._add(ENVIRONMENTS, **row.model_dump())
        checkpoint = Checkpoint(authority.origin, self.frontier.size, self.frontier.root)
        self._add(CHECKPOINTS, size=checkpoint.size, note=checkpoint.signed(authority.log))
        self._add(PROJECTION, id=1, position=checkpoint.size)
        self.write()

    def _add(self, shape: Shape, **values: Any) -> None:
        self.waiting[shape].append(shape.row(values))

    def _result(self, row: Row, slower: float, whose: Mapping[str, Any]) -> str:
        """Submission, measurement and log entry of one result; returns its id."""
        index = self.frontier.size
        at = BEGAN + timedelta(seconds=index)
        digest = hashlib.sha256(b"result %d" % index)
        identity = new_id(at, index)
        own = {**whose, "submission_id": identity, "log_index": index, "received_at": at}
        self.waiting[MEASUREMENTS].append(MEASUREMENTS.changed(row, slower, own))
        self._add(
            SUBMISSIONS, id=identity, payload=self._payload(index), signature=bytes(64),
            payload_sha256=digest.hexdigest(), payload_type=statement.RESULT_PAYLOAD_TYPE,
            key_id=whose["key_id"], received_at=at, run_id=whose["run_id"],
            cell_digest=row[MEASUREMENTS.place["cell_digest"]],
            repeat=row[MEASUREMENTS.place["repeat"]], challenge_id=whose.get("challenge_id"),
        )  # fmt: skip
        self._entry(kind="result", submission_id=identity)
        return identity

    def _payload(self, index: int) -> bytes:
        """What stands for the payload of the result at an index of the log."""
        return b"%d" % index

    def _entry(self, **values: Any) -> None:
        """Log an entry."""
        index = self.frontier.size
        commitment = hashlib.sha256(b"entry %d" % index).digest()
        self._add(
            ENTRIES, log_index=index, commitment=commitment, salt=commitment,
            logged_at=BEGAN + timedelta(seconds=index), **values,
        )  # fmt: skip
        complete = self.frontier.add(merkle.leaf_hash(commitment))
        self.waiting[NODES] += ([*node, value] for node, value in complete)

    def _figures(
        self, of_cell: "Template", slower: float, subject: Subject, ids: list[str]
    ) -> None:
        """What three repeats make of a run, of its machine, and of its owner."""
        machine, owner, hardware = (at_level(level, subject) for level in LEVELS[1:])
        middle = ids[of_cell.middle]
        newest_at = self.waiting[MEASUREMENTS][-1][MEASUREMENTS.place["received_at"]]
        for row, own, parent in (
            (of_cell.figures[0], subject, machine.id),
            (of_cell.figures[1], machine, owner.id),
            (of_cell.figures[2], owner, hardware.id),
        ):
            values = {
                "id": own.id,
                "parent_id": parent,
                "result_id": middle,
                "owner": own.owner,
                "machine_id": own.machine_id,
                "run_id": own.run_id,
                "newest_at": newest_at,
            }
            changed = AGGREGATES.changed(row, slower, values)
            self.waiting[AGGREGATES].append(changed)
        of_owner = dict(zip(AGGREGATES.names, changed, strict=True))
        columns = [of_owner[column.name] for column in aggregate_rows.FIGURE_COLUMNS]
        self.owners[hardware].append(aggregate_rows.figure(columns))


class Template(NamedTuple):
    """The rows of a kind's three repeats of a cell as the server derives them, and those of the
    three figures they make, none where they do not count; ``middle`` stands for all."""

    subject: Subject
    rows: list[Row]
    figures: list[Row]
    middle: int


@cache
def _templates(kind: int) -> list[Template]:
    return list(_cells(kind))


def _cells(kind: int) -> Iterator[Template]:
    results_ = _results(kind)
    for start in range(0, len(results_), world.REPEATS):
        rows = [_row(result) for result in results_[start : start + world.REPEATS]]
        subject = aggregate_rows.subject_of(SimpleNamespace(**rows[0]))
        figures = []
        if rows[0]["rankable"]:
            repeats = [aggregate_rows.figure_of_result(SimpleNamespace(**row)) for row in rows]
            below, made = repeats, []
            for level in LEVELS[:3]:
                figure = combine(Children.of(below), level, at_level(level, subject))
                made.append(aggregate_rows.aggregate_columns(level, figure))
                below = [figure]
            figures = made
        middle = sorted(range(len(rows)), key=lambda number: rows[number]["ns_per_sample"] or 0)[1]
        yield Template(
            subject,
            [MEASUREMENTS.row(row) for row in rows],
            [AGGREGATES.row(values) for values in figures],
            middle,
        )


def _row(result: Result) -> dict[str, Any]:
    key = SigningKey(key_id="0" * 64, owner="", first_key_id="0" * 64)
    took = timedelta(seconds=world.RUN_SECONDS)
    facts = submission_checks.SubmissionFacts(BEGAN, "fresh", BEGAN - took)
    entry = SimpleNamespace(
        log_index=0,
        submission_id=f"{result.repeat:016x}",  # each repeat counts
        received_at=BEGAN,
        challenge_id=None,
        outlier=None,
        ask_id=None,
    )
    verdicts = (
        *result_checks.of_result(result),
        *submission_checks.of_submission(result, facts),
    )
    own = columns.of_result(result)
    made = measurements.result_entry(entry, key, result, own, verdicts)  # type: ignore[arg-type]
    return made.row(outliers.finding(made.columns["samples_per_second"], outliers.NONE))


def _environments(kind: int) -> list[EnvironmentRow]:
    return [environment_row(result) for result in _results(kind)]


@cache
def _results(kind: int) -> list[Result]:
    return world.Sender(kind, results.private_key()).results()
