"""Fills a migrated database with results straight, past the server: a million in minutes.

Derived tables are as the server makes them: measurements by its own functions from one result a
kind and cell, figures by :func:`bench_server.rank.combine`, the log with every node. Two things are
stand-ins that no measured request reads: a payload is only its number, and signatures are zeros.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from math import log
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlalchemy import Table, insert
from sqlmodel import Session, SQLModel
from tests.fakes import results

from bench_protocol import merkle
from bench_protocol.log import Checkpoint
from bench_protocol.result import Result
from bench_server import checks, derive, judge, rank, standing_rows
from bench_server.attributes import environment_row
from bench_server.authority import Authority
from bench_server.db import Store
from bench_server.tables import (
    EnvironmentRow,
    LogCheckpoint,
    LogEntry,
    LogNode,
    Measurement,
    Owner,
    SigningKey,
    Standing,
    Submission,
)

from . import world

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
MACHINES_AT_ONCE = 200
# Columns that grow with the time of a step, those that shrink, and its logarithms.
TIMES = ("block_median_ns", "epoch_ns", "ns_per_sample", "fastest_ns", "slowest_ns", "middle_ns")
TIMES += ("joules_per_sample",)
RATES = ("samples_per_second", "mfu")
LOGARITHMS = ("log_mean", "value_log_mean")
Row = dict[str, Any]


def seed(store: Store, authority: Authority, count: int) -> int:
    """Keep at least ``count`` results, in whole runs, in an empty log; returns their number."""
    machines = -(-count // world.RUN)
    with store.writing() as session:
        if session.get_bind().dialect.name == "sqlite":
            session.connection().exec_driver_sql("PRAGMA cache_size = -1000000")
        seeding = Seeding(session)
        for number in range(machines):
            seeding.machine(number)
            if number % MACHINES_AT_ONCE == MACHINES_AT_ONCE - 1:
                seeding.write()
        seeding.finish(authority)
    with store.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql("ANALYZE")
    return machines * world.RUN


class Seeding:
    """Rows that wait to be written, and what the whole needs at its end."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.waiting: dict[type[SQLModel], list[Row]] = defaultdict(list)
        self.owners: dict[rank.Subject, list[rank.Figure]] = defaultdict(list)
        self.frontier = merkle.Frontier()

    def machine(self, number: int) -> None:
        """One machine with its key, its owner, its run, and the figures of these."""
        kind = number % world.KINDS
        key_id = hashlib.sha256(b"seeded %d" % number).hexdigest()
        owner, machine_id = f"seeded-{number}", derive.machine_id(key_id, f"{number + 1:064x}")
        self._add(Owner, label=owner, confirmed=False)
        self._add(
            SigningKey, key_id=key_id, spki=bytes(44), status="active", owner=owner,
            first_key_id=key_id, enrolled_at=BEGAN,
        )  # fmt: skip
        for cell, of_cell in enumerate(_templates(kind)):
            slower = world.step_ns(number, cell, 0) / world.step_ns(kind, cell, 0)
            subject = replace(of_cell.subject, owner=owner, machine_id=machine_id)
            whose = {
                "key_id": key_id,
                "run_id": key_id[:32],
                "owner": owner,
                "machine_id": machine_id,
                "environment_standing": subject.id,
                "machine_standing": replace(subject, environment_id="").id,
            }
            ids = [self._result(_slower(row, slower) | whose) for row in of_cell.rows]
            if of_cell.figures:
                self._figures(of_cell, slower, subject, ids)

    def write(self) -> None:
        """Write what waits, tables in the order that their foreign keys ask for."""
        for table in (
            *(Owner, SigningKey, Submission, EnvironmentRow, Measurement),
            *(LogEntry, LogNode, LogCheckpoint, Standing),
        ):
            rows = self.waiting.pop(table, None)
            if rows:
                _insert(self.session, table.__table__, rows)  # type: ignore[attr-defined]

    def finish(self, authority: Authority) -> None:
        """The figures of hardware, the environments, and the log's checkpoint."""
        for subject, owners in self.owners.items():
            found = rank.combine(owners, "owners", subject)
            self.waiting[Standing].append(standing_rows.standing_values("hardware", found, owners))
        found = {row.id: row.model_dump() for k in range(world.KINDS) for row in _environments(k)}
        self.waiting[EnvironmentRow] += found.values()
        checkpoint = Checkpoint(authority.origin, self.frontier.size, self.frontier.root)
        self._add(LogCheckpoint, size=checkpoint.size, note=checkpoint.signed(authority.log))
        self.write()

    def _add(self, table: type[SQLModel], **values: Any) -> None:
        self.waiting[table].append(values)

    def _result(self, row: Row) -> str:
        """Submission, measurement and log entry of one result; returns its id."""
        index = self.frontier.size
        at = BEGAN + timedelta(seconds=index)
        digest = hashlib.sha256(b"result %d" % index)
        identity = digest.hexdigest()[:16]
        self.waiting[Measurement].append(
            row | {"submission_id": identity, "log_index": index, "received_at": at}
        )
        self._add(
            Submission, id=identity, payload=b"%d" % index, payload_sha256=digest.hexdigest(),
            payload_type="seeded", signature=bytes(64), key_id=row["key_id"], received_at=at,
        )  # fmt: skip
        self._add(
            LogEntry, log_index=index, kind="result", commitment=digest.digest(),
            salt=digest.digest(), submission_id=identity, logged_at=at,
            payload_sha256=None, envelope=None, key_chain=None,
        )  # fmt: skip
        for (level, position), value in self.frontier.add(merkle.leaf_hash(digest.digest())):
            self._add(LogNode, level=level, position=position, hash=value)
        return identity

    def _figures(
        self, of_cell: "Template", slower: float, subject: rank.Subject, ids: list[str]
    ) -> None:
        """What three repeats make of a machine in its one environment, of it, and of its owner."""
        machine = replace(subject, environment_id="")
        owner = replace(machine, machine_id="")
        hardware = replace(owner, owner="")
        middle = ids[of_cell.middle]
        for row, own, parent, child in (
            (of_cell.figures[0], subject, None, middle),
            (of_cell.figures[1], machine, owner.id, middle),
            (of_cell.figures[2], owner, hardware.id, machine.id),
        ):
            values = _slower(row, slower) | {
                "id": own.id,
                "parent_id": parent,
                "middle_id": child,
                "result_id": middle,
                "owner": own.owner,
                "machine_id": own.machine_id,
                "newest_at": self.waiting[Measurement][-1]["received_at"],
            }
            self.waiting[Standing].append(values)
        self.owners[hardware].append(standing_rows.figure(SimpleNamespace(**values)))


class Template(NamedTuple):
    """The rows of a kind's three repeats of a cell as the server derives them, and those of the
    three figures they make, none where they do not count; ``middle`` stands for all."""

    subject: rank.Subject
    rows: list[Row]
    figures: list[Row]
    middle: int


@cache
def _templates(kind: int) -> list[Template]:
    results_, found = _results(kind), []
    for start in range(0, len(results_), world.REPEATS):
        rows = [_row(result) for result in results_[start : start + world.REPEATS]]
        subject = standing_rows.subject_of_result(rows[0])
        figures = []
        if rows[0].rankable:
            repeats = [standing_rows.figure_of_result(row) for row in rows]
            of_machine = rank.combine(repeats, "repeats", subject)
            of_owner = rank.combine([of_machine], "machines", subject)
            whole = {"environment_id": ""}
            figures = [
                standing_rows.standing_values("environment", of_machine, repeats),
                standing_rows.standing_values("machine", of_machine, repeats) | whole,
                standing_rows.standing_values("owner", of_owner, [of_machine]) | whole,
            ]
        middle = sorted(range(len(rows)), key=lambda number: rows[number].ns_per_sample or 0)[1]
        found.append(Template(subject, [row.model_dump() for row in rows], figures, middle))
    return found


def _row(result: Result) -> Measurement:
    key = SigningKey(key_id="0" * 64, owner="", first_key_id="0" * 64)
    submission = Submission(id="0" * 16, key_id=key.key_id, received_at=BEGAN)
    row = derive.measurement_row(submission, result, key, log_index=0)
    derive.check(row, result, checks.Arrival(BEGAN, "foreign"))
    judge.judge(row, key)
    return row


def _environments(kind: int) -> list[EnvironmentRow]:
    return [environment_row(result) for result in _results(kind)]


@cache
def _results(kind: int) -> list[Result]:
    return world.Sender(kind, results.private_key()).results()


def _slower(row: Row, factor: float) -> Row:
    """A template's row where all takes longer by this factor."""
    changed = row.copy()
    for name in TIMES:
        if changed.get(name) is not None:
            changed[name] = type(row[name])(row[name] * factor)
    for name in RATES:
        if changed.get(name) is not None:
            changed[name] = row[name] / factor
    for name in LOGARITHMS:
        if name in changed:
            changed[name] = row[name] + log(factor)
    return changed


def _insert(session: Session, table: Table, rows: Iterable[Row]) -> None:
    """Write rows by the fastest way of the database: COPY, or one prepared statement."""
    connection = session.connection()
    if connection.dialect.name != "postgresql":
        connection.execute(insert(table), list(rows))
        return
    names = [column.name for column in table.columns]
    copied = f"COPY {table.name} ({', '.join(names)}) FROM STDIN"
    raw: Any = connection.connection.driver_connection
    with raw.cursor() as cursor, cursor.copy(copied) as copy:
        for row in rows:
            copy.write_row([row.get(name) for name in names])
