"""Rows that benchmarks seed directly equal the rows that the server would store."""

import math
from typing import Any

import pytest
from benchmarks.server import seed, sizes, world
from sqlalchemy import func, inspect, select
from sqlmodel import Session
from tests.fakes import postgres
from tests.fakes.authority import AUTHORITY

from bench_protocol.signing import merkle
from bench_protocol.signing.receipts import Checkpoint
from bench_server.db.store import Store
from bench_server.db.tables import (
    Aggregate,
    LogCheckpoint,
    LogEntry,
    Measurement,
    Submission,
    Table,
)
from bench_server.log import reader
from bench_server.ranking import aggregates
from bench_server.ranking.aggregates import Stale
from bench_server.ranking.rows import subject_of

# One machine of each kind of hardware, and a second one of the first.
MACHINES = world.KINDS + 1


@pytest.fixture
def database_url(database_url: str) -> str:
    """With the superuser: seeding switches off the checks of foreign keys."""
    return database_url.replace(f"//{postgres.OWNER}@", "//trainmark@")


def _aggregates(session: Session) -> dict[str, dict[str, Any]]:
    return {row.id: row.model_dump() for row in session.scalars(select(Aggregate))}


def test_seeded_rows_agree_with_each_other_and_with_their_keys_and_indexes(store: Store) -> None:
    assert seed.seed(store, AUTHORITY, MACHINES * world.RUN) == MACHINES * world.RUN
    with store.writing() as session:
        stored = _aggregates(session)
        assert {row["level"] for row in stored.values()} == set(aggregates.LEVELS)
        rows = session.scalars(select(Measurement)).all()
        assert len(rows) == MACHINES * world.RUN
        stale = Stale.above(subject_of(row) for row in rows)
        aggregates.refresh(session.connection(), stale)
        session.expire_all()
        computed = _aggregates(session)
        assert computed.keys() == stored.keys()
        for identity, values in computed.items():
            for name, value in values.items():
                found = stored[identity][name]
                same = (
                    math.isclose(found, value, rel_tol=1e-6, abs_tol=1e-7)
                    if isinstance(value, float)
                    else found == value
                )
                assert same, (values["level"], name, found, value)
        first = session.scalars(select(Submission).where(Submission.received_at == seed.BEGAN))  # type: ignore[arg-type]
        assert len(first.all()) == 1
        for table in Table.metadata.sorted_tables:
            for key in table.foreign_keys:
                there = select(key.column).where(key.column == key.parent).exists()
                orphans = select(func.count()).where(key.parent.is_not(None), ~there)
                assert session.scalar(orphans) == 0, key
    database = inspect(store.engine)
    for table in Table.metadata.sorted_tables:
        names = {index["name"] for index in database.get_indexes(table.name)}
        assert {index.name for index in table.indexes} <= names, table.name
    # The log is what its checkpoint signs.
    with store.reading() as session:
        leaves = session.scalars(select(LogEntry.commitment).order_by(LogEntry.log_index))  # type: ignore[arg-type]
        frontier = merkle.Frontier()
        for commitment in leaves:
            frontier.add(merkle.leaf_hash(commitment))
        checkpoint = Checkpoint(AUTHORITY.origin, frontier.size, frontier.root)
        assert reader.size(session) == frontier.size == MACHINES * world.RUN
        assert reader.newest_checkpoint(session).note == checkpoint.signed(AUTHORITY.log)


def test_the_line_through_sizes_weighs_each_alike() -> None:
    exact = sizes.fit([10, 20, 1000], [105, 205, 10_005])
    assert exact.at(50) == pytest.approx(505)
    assert exact.residual == pytest.approx(0, abs=1e-9)
    assert sizes.fit([10, 20, 1000], [105, 205, 20_010]).residual > 0.1


def test_a_simulated_run_has_all_that_a_run_leaves(store: Store) -> None:
    """A payload, an entry and a checkpoint for each result, and the recomputations of its jobs."""
    assert sizes.fill(store, AUTHORITY, 1) == world.RUN
    with store.reading() as session:
        payloads = session.scalars(select(Submission.payload)).all()  # type: ignore[call-overload]
        recomputations = session.scalar(
            select(func.count()).where(LogEntry.kind == "recomputation")  # type: ignore[arg-type]
        )
        entries = session.scalar(select(func.count()).select_from(LogEntry))
        notes = session.scalar(select(func.count()).select_from(LogCheckpoint))
    assert len(payloads) == world.RUN
    assert min(map(len, payloads)) > 3000
    assert entries == world.RUN + 1 + recomputations == notes - 1
    assert recomputations >= len(world.CATALOGUE)
