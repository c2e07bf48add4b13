"""Boards by trust level: equal to a computation from every machine's figure."""

import math
from collections.abc import Iterator

import pytest
from benchmarks.server import seed, world
from sqlalchemy import event, select, update
from sqlmodel import Session
from tests.fakes.authority import AUTHORITY

from bench_protocol.catalogue import CATALOGUE
from bench_server.answers import leaderboard_sql
from bench_server.answers.filters import BoardFilters
from bench_server.db.store import Store
from bench_server.db.tables import Measurement
from bench_server.ranking import aggregates
from bench_server.ranking.figures import of_machines
from bench_server.ranking.rows import RESULTS, TABLE, figure


@pytest.fixture
def session(store: Store) -> Iterator[Session]:
    """Three machines of each of twenty hardware: none, one, two or all of them at trust level 2."""
    seed.seed(store, AUTHORITY, 3 * world.KINDS * world.RUN)
    with store.writing() as writing:
        machines = sorted(set(writing.scalars(select(RESULTS.c.machine_id).distinct())))
        slugs = dict(
            writing.execute(select(RESULTS.c.machine_id, RESULTS.c.hardware_slug).distinct()).all()
        )
        kinds = sorted(set(slugs.values()))
        trusted, met = [], dict.fromkeys(kinds, 0)
        for machine in machines:
            slug = slugs[machine]
            met[slug] += 1
            if met[slug] <= kinds.index(slug) % 4:
                trusted.append(machine)
        of_trusted = RESULTS.c.machine_id.in_(trusted)
        writing.execute(update(RESULTS).values(trust_level=1))
        writing.execute(update(RESULTS).where(of_trusted).values(trust_level=2))
        aggregates.refresh(writing, writing.scalars(select(Measurement)).all())
        yield writing


def test_hardware_by_trust(session: Session) -> None:
    for workload in CATALOGUE:
        filters = BoardFilters(workload=workload.name, trust=2)
        (figures,) = leaderboard_sql.figures(session, [workload], filters).values()
        actual = {f.id: f for f in figures}
        machines = session.execute(
            select(TABLE).where(
                TABLE.c.level == "machine",
                TABLE.c.workload_digest == workload.digest,
                TABLE.c.trust_level >= 2,
            )
        )
        wanted = {f.id: f for f in of_machines(figure(row) for row in machines)}
        assert actual.keys() == wanted.keys()
        for identity, expected in wanted.items():
            other = actual[identity]
            assert (
                expected.machines,
                expected.owners,
                expected.trust_level,
                expected.evidence,
            ) == (*(other.machines, other.owners, other.trust_level, other.evidence),)
            assert math.isclose(expected.ns_per_sample, other.ns_per_sample)
            assert expected.values == pytest.approx(other.values)


def test_machines_are_read_only_where_they_differ_in_trust(session: Session) -> None:
    seen: list[tuple[str, object]] = []
    connection = session.connection()
    event.listen(connection, "before_cursor_execute", lambda *a: seen.append((a[2], a[3])))
    leaderboard_sql.figures(session, CATALOGUE, BoardFilters(trust=1))
    assert len(seen) == 1
    leaderboard_sql.figures(session, CATALOGUE, BoardFilters(trust=2))
    assert len(seen) == 3
