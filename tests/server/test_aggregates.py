"""Standings: what ingest keeps equals what the ranking says of the repeats."""

import itertools
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select
from sqlmodel import Session

from bench_server.db.store import Store
from bench_server.db.tables import Aggregate, Measurement, Owner, SigningKey, Submission
from bench_server.ranking import aggregates, aggregates_sql
from bench_server.ranking import rows as aggregate_rows
from bench_server.ranking.figures import figures, replace

AT = datetime(2026, 11, 21, tzinfo=UTC)
KEY = "0" * 64
_ids = itertools.count(1)

# Owner, machine, environment, time: few of each, so that they meet.
arrivals = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from("12"),
        st.sampled_from("xy"),
        st.sampled_from([90.0, 100.0, 100.5, 101.0, 130.0, 900.0]),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)


def measurement(owner: str, machine: str, environment: str, ns: float, real: bool) -> Measurement:
    number = next(_ids)
    row = Measurement(
        submission_id=f"{number:016x}",
        key_id=KEY,
        log_index=number,
        received_at=AT + timedelta(seconds=number),
        started_at=AT,
        owner=owner,
        machine_id=f"{owner}{machine}".ljust(16, "0"),
        environment_id=environment,
        hardware="H",
        hardware_slug="h",
        workload="mnist-cnn",
        workload_digest="d" * 64,
        framework="mlx",
        device="metal",
        device_index=0,
        recipe="naive",
        batch_size=64,
        precision="float32",
        data="real" if real else "generated",
        cell_digest="c" * 64,
        run_id=f"{number:032x}",
        repeat=1,
        status="measured",
        rankable=True,
        trust_level=1 + number % 3,
        verdicts="[]",
        ns_per_sample=ns,
        spread=ns / 1e4,
    )
    whole = aggregate_rows.subject_of_result(row)
    row.environment_standing = whole.id
    row.machine_standing = replace(whole, environment_id="").id
    return row


def keep(session: Session, rows: list[Measurement]) -> None:
    session.connection().execute(
        insert(Submission.__table__),  # type: ignore[attr-defined]
        [
            {
                "id": row.submission_id,
                "payload": b"",
                "payload_sha256": row.submission_id * 4,
                "payload_type": "",
                "signature": b"",
                "key_id": KEY,
                "received_at": AT,
            }
            for row in rows
        ],
    )
    session.add_all(rows)
    session.flush()


@pytest.fixture
def kept(store: Store) -> Store:
    with store.writing() as session:
        session.add(Owner(label="o"))
        session.flush()
        session.add(SigningKey(key_id=KEY, spki=b"", owner="o", first_key_id=KEY, enrolled_at=AT))
    return store


def empty(session: Session) -> None:
    for table in (Aggregate, Measurement, Submission):
        session.connection().execute(delete(table))


def table(session: Session) -> dict[str, dict[str, Any]]:
    rows = session.connection().execute(select(Aggregate.__table__)).mappings()  # type: ignore[attr-defined]
    return {row["id"]: dict(row) for row in rows}


def same(found: dict[str, dict[str, Any]], wanted: dict[str, dict[str, Any]]) -> None:
    assert found.keys() == wanted.keys()
    for identity, row in found.items():
        for name, value in row.items():
            expected = wanted[identity][name]
            if isinstance(value, float):
                expected = pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert value == expected, (row["level"], name)


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    rows=arrivals,
    groups=st.integers(1, 4),
    seed=st.integers(0, 9),
    few=st.sampled_from([0, 2, aggregates_sql.FEW]),
)
def test_kept_one_by_one_or_in_groups_is_what_is_computed_at_once(
    kept: Store, rows: list[Any], groups: int, seed: int, few: int
) -> None:
    """However many children are few enough to be read whole."""
    made = [measurement(*row) for row in rows]
    random.Random(seed).shuffle(made)
    with kept.writing() as session:
        empty(session)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(aggregates_sql, "FEW", few)
            for start in range(0, len(made), groups):
                keep(session, made[start : start + groups])
                aggregates.add(session, made[start : start + groups])
        stepped = table(session)
        whole = figures([aggregate_rows.figure_of_result(row) for row in made])
        hardware = [aggregate_rows.figure(row) for row in of_level(session, "hardware")]
        assert {f.id: f.ns_per_sample for f in hardware} == {f.id: f.ns_per_sample for f in whole}
        assert {f.id: f.evidence for f in hardware} == {f.id: f.evidence for f in whole}
        assert {f.id: f.unit for f in hardware} == {f.id: f.unit for f in whole}
        session.connection().execute(delete(Aggregate))
        aggregates.refresh(session, made)
        same(stepped, table(session))


def of_level(session: Session, level: str) -> list[Any]:
    found = select(Aggregate.__table__).where(Aggregate.level == level)  # type: ignore[attr-defined, arg-type]
    return list(session.connection().execute(found))


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(rows=arrivals, flagged=st.sets(st.integers(0, 13)), moved=st.sets(st.integers(0, 13)))
def test_what_ceased_to_count_was_never_there(
    kept: Store, rows: list[Any], flagged: set[int], moved: set[int]
) -> None:
    made = [measurement(*row) for row in rows]
    with kept.writing() as session:
        empty(session)
        keep(session, made)
        aggregates.add(session, made)
        changed = [row for number, row in enumerate(made) if number in flagged | moved]
        for number, row in enumerate(made):
            if number in flagged:
                row.rankable, row.unranked_reason = False, "flagged by the operator"
        owners = {row.machine_id for number, row in enumerate(made) if number in moved}
        for row in made:
            if row.machine_id in owners:
                row.owner = "a club"
        aggregates.refresh(session, [*changed, *(r for r in made if r.owner == "a club")])
        found = table(session)
        session.connection().execute(delete(Aggregate))
        aggregates.add(session, made)
        same(found, table(session))
