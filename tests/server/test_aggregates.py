"""Aggregates: what the database summarises equals what the ranking says of the repeats."""

import itertools
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, insert, select, update
from tests.fakes import results as fakes

from bench_server.db.store import Store
from bench_server.db.tables import Owner, table_of
from bench_server.ingest import columns
from bench_server.ranking import aggregates, children
from bench_server.ranking import rows as ranked_rows
from bench_server.ranking.aggregates import Stale
from bench_server.ranking.figures import Figure, at_level
from bench_server.ranking.medians import combined, of_machines
from bench_server.ranking.owners import facts_of
from bench_server.ranking.rows import FIGURE_COLUMNS, RESULTS, TABLE, subject_of

AT = datetime(2026, 11, 21, tzinfo=UTC)
BASE = dict.fromkeys(RESULTS.c.keys()) | columns.of_result(fakes.make_result())
BASE |= {"rankable": True, "verdicts": "[]"}
OWNERS = table_of(Owner)
_ids = itertools.count(1)
Row = dict[str, Any]

# Owner, machine, run, environment, time: few of each, so that they meet.
TIMES = [90.0, 100.0, 100.5, 101.0, 130.0, 900.0]
parts = (*map(st.sampled_from, ("abcd", "12", "123", "xy", TIMES)), st.booleans(), st.booleans())
results = st.lists(st.tuples(*parts), min_size=1, max_size=14)
quick = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


def measurement(
    owner: str, machine: str, run: str, environment: str, ns: float, real: bool, disturbed: bool
) -> Row:
    number = next(_ids)
    row: Row = BASE | {
        "submission_id": f"{number:016x}",
        "log_index": number,
        "received_at": AT + timedelta(seconds=number),
        "owner": owner,
        "machine_id": f"{owner}{machine}".ljust(16, "0"),
        "environment_id": environment,
        "data": "real" if real else "generated",
        "run_id": f"{owner}{machine}{run}",
        "trust_level": 2 + number % 3,
        "ns_per_sample": ns,
        "spread": ns / 1e4,
        "disturbed": disturbed,
    }
    return row | {"run_aggregate": subject_of(SimpleNamespace(**row)).id}


def above(rows: Iterable[Row]) -> Stale:
    return Stale.above(subject_of(SimpleNamespace(**row)) for row in rows)


def add(connection: Connection, rows: Sequence[Row]) -> None:
    connection.execute(insert(RESULTS), list(rows))
    aggregates.refresh(connection, above(rows))


def empty(connection: Connection) -> None:
    for table in (TABLE, RESULTS, OWNERS):
        connection.execute(delete(table))


def vouch(
    connection: Connection, confirmed: set[str], established: set[str], together: set[str]
) -> None:
    """Set which owners are confirmed, established or of one area; touch their aggregates."""
    connection.execute(delete(OWNERS))
    for one in sorted(confirmed | established | together):
        row = {"label": one, "confirmed": one in confirmed, "established": one in established}
        connection.execute(insert(OWNERS).values(row | {"area": 7 if one in together else None}))
    subjects = [subject_of(row) for row in connection.execute(select(RESULTS))]
    stale = Stale.of_owners(at_level("owner", subject) for subject in subjects)
    aggregates.refresh(connection, stale)


def stored(connection: Connection) -> dict[str, Row]:
    return {row["id"]: dict(row) for row in connection.execute(select(TABLE)).mappings()}


def hardware(connection: Connection) -> dict[str, Figure]:
    found = connection.execute(select(*FIGURE_COLUMNS).where(TABLE.c.level == "hardware"))
    return {made.id: made for made in map(ranked_rows.figure, found)}


def from_repeats(connection: Connection) -> dict[str, Figure]:
    found = connection.execute(select(RESULTS).where(RESULTS.c.rankable))
    repeats = map(ranked_rows.figure_of_result, found)
    machines = combined(combined(repeats, "run"), "machine")
    return {f.id: f for f in of_machines(machines, facts_of(connection, "abcd"))}


@quick
@given(
    rows=results,
    groups=st.integers(1, 4),
    few=st.sampled_from([0, 2, children.FEW]),
    confirmed=st.sets(st.sampled_from("abcd")),
    established=st.sets(st.sampled_from("abcd")),
    together=st.sets(st.sampled_from("abcd")),
)
def test_batches_of_any_size_give_the_figures_of_the_repeats(
    store: Store,
    rows: list[Any],
    groups: int,
    few: int,
    confirmed: set[str],
    established: set[str],
    together: set[str],
) -> None:
    made = [measurement(*row) for row in rows]
    with store.writing() as session, pytest.MonkeyPatch.context() as patch:
        connection = session.connection()
        empty(connection)
        patch.setattr(children, "FEW", few)
        for start in range(0, len(made), groups):
            add(connection, made[start : start + groups])
        vouch(connection, confirmed, established, together)
        assert hardware(connection) == from_repeats(connection)
        in_batches = stored(connection)
        connection.execute(delete(TABLE))
        aggregates.refresh(connection, above(made))
        assert stored(connection) == in_batches


@quick
@given(rows=results, flagged=st.sets(st.integers(0, 13)), moved=st.sets(st.integers(0, 13)))
def test_results_that_stop_to_count_leave_nothing(
    store: Store, rows: list[Any], flagged: set[int], moved: set[int]
) -> None:
    made = [measurement(*row) for row in rows]
    machines = {row["machine_id"] for number, row in enumerate(made) if number in moved}
    unranked = {row["submission_id"] for number, row in enumerate(made) if number in flagged}
    with store.writing() as session:
        connection = session.connection()
        empty(connection)
        add(connection, made)
        before = above(made)
        connection.execute(
            update(RESULTS)
            .where(RESULTS.c.submission_id.in_(unranked))
            .values(rankable=False, unranked_reason="flagged by the operator")
        )
        of_machines = RESULTS.c.machine_id.in_(machines)
        connection.execute(update(RESULTS).where(of_machines).values(owner="a club"))
        rows_now = connection.execute(select(RESULTS)).mappings().all()
        now = above(map(dict, rows_now))
        aggregates.refresh(connection, before | now)
        assert hardware(connection) == from_repeats(connection)
        after = stored(connection)
        connection.execute(delete(TABLE))
        aggregates.refresh(connection, now)
        assert stored(connection) == after
