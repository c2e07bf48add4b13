"""Query plans of both databases: no board, comparison or page reads all results."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, insert
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.statements import statements

from bench_protocol.catalogue.matrix import Device
from bench_server.answers import stored_results
from bench_server.db.store import Store
from bench_server.db.tables import Measurement, Submission
from bench_server.projection import outliers
from bench_server.ranking import children
from bench_server.ranking.rows import TABLE

LARGE = r"(measurement|submission)"
# The index of the few results that do not count; all of it is little.
FEW = "ix_measurement_unranked_newest"
# What the databases say when they read a large table from end to end.
WHOLE = {
    "sqlite": rf"^SCAN {LARGE}(?! USING INDEX {FEW})",
    "postgresql": rf"(Seq Scan on {LARGE})|((Index|Index Only|Bitmap Heap) Scan "
    rf"(?!Backward using {FEW})[^\n]*on {LARGE}[^\n]*\n(?!\s*(Index Cond|Recheck Cond|->)))",
}
# SQLite beginning with aggregates by nothing but their level; PostgreSQL reads so few at once.
WHOLE_LEVEL = r"SEARCH aggregate USING [^\n]*\(level=\?\)"
COPIES = 20_000
SLUG = "intel-core-i7-8700"
ADDRESSES = [
    "/api/v1/leaderboard",
    "/api/v1/leaderboard?workload=mnist-cnn&group=machine&rank_by=energy",
    "/api/v1/leaderboard?workload=mnist-cnn&group=setup&batch_size=any&precision=any&rank_by=mfu",
    "/api/v1/leaderboard?workload=mnist-cnn&trust_level=1",
    "/api/v1/leaderboard?workload=mnist-cnn&q=i7&framework=mlx&recipe=naive&data=generated&timing=short",
    f"/api/v1/leaderboard?hardware={SLUG}&baseline=apple-m2-max-30-core-gpu",
    "/api/v1/compare?ids={hardware},{machine}",
    "/api/v1/compare?ids={result},setup-{result}",
    "/api/v1/results?status=failed",
    "/api/v1/results?ranked=false",
    "/api/v1/results?workload=resnet50-transfer",
    "/api/v1/results?framework=jax&device=cpu",
    "/api/v1/results?precision=tf32",
    "/api/v1/results?batch_size=7",
    "/api/v1/results?recipe=pipeline",
    "/api/v1/results?device=metal",
    "/api/v1/results?data=real",
    "/api/v1/results?timing=long",
    "/api/v1/results?hardware=hardware-7",
    "/api/v1/results?machine_id={machine}",
    "/api/v1/results?owner={owner}",
    "/api/v1/results?owner={owner}&received_after=2026-01-10&sort=received_at",
    "/api/v1/results?received_after=2026-01-14",
    "/api/v1/leaderboard?workload=mnist-cnn&owner={owner}",
    "/api/v1/machines?owner={owner}",
    "/api/v1/owners/{owner}",
    "/api/v1/results?run_id=00000000000000000000000000000000",
    "/api/v1/results?key_id=0000000000000000000000000000000000000000000000000000000000000000",
    "/",
    "/?q={machine}",
    "/?workload=mnist-cnn&group=machine",
    "/?workload=mnist-cnn&group=setup",
    "/results?hardware=hardware-7",
    "/compare",
    "/compare?ids={hardware},{machine}",
    "/results/{result}",
    "/card.png",
    "/compare/card.png?ids={hardware},{machine}",
    *(
        "/results/{result}/card.png",
        "/machines/{machine}/card.png",
        "/hardware/{hardware}/card.png",
    ),
]


def plan(connection: Connection, statement: str, parameters: Any) -> str:
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        return "\n".join(row[3] for row in rows)
    rows = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
    return "\n".join(row[0] for row in rows)


@pytest.fixture
def filled(post: Poster, store: Store) -> dict[str, str]:
    """Real results, and many copies of one, so that reading them all is the worst plan."""
    m2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
    post.made(cell=results.make_cell(device=Device(kind="metal")), machine=m2, step_ns=100_000)
    post(results.make_failure())
    identity = post.made()
    with store.writing() as session:
        submission, row = stored_results.result_with_id(session, identity)
        session.connection().execute(
            insert(Submission),
            [
                submission.model_dump()
                | {
                    "id": f"{n:016x}",
                    "payload": b"",
                    "payload_sha256": f"{n:064x}",
                    "run_id": f"f{n:031x}",
                    "challenge_id": None,
                }
                for n in range(COPIES)
            ],
        )
        session.connection().execute(
            insert(Measurement), [row.model_dump() | different(n) for n in range(COPIES)]
        )
    with store.engine.connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()
    answer = post.http.get(f"/api/v1/results/{identity}").json()
    machine = answer["machine_id"]
    owner = post.http.get(f"/api/v1/machines/{machine}").json()["owner"]
    return {"result": identity, "machine": machine, "hardware": SLUG, "owner": owner}


def different(n: int) -> dict[str, Any]:
    return {
        "log_index": 1_000 + n,
        "submission_id": f"{n:016x}",
        "run_id": f"f{n:031x}",
        "received_at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=n),
        "machine_id": f"{n % 500:016x}",
        "owner": f"owner-{n % 50}",
        "run_aggregate": f"{n % 900:032x}",
        "environment_id": f"{n % 300:032x}",
        "hardware_slug": f"hardware-{n % 40}",
        "workload_digest": f"{n % 8:064x}",
        "batch_size": 2 ** (5 + n % 5),
        "status": "measured" if n % 20 else "failed",
        "rankable": n % 20 > 0,
        "unranked_reason": None if n % 20 else "made up",
        "ns_per_sample": 1000.0 + n,
        "joules_per_sample": 0.1 * n if n % 50 == 0 else None,
    }


def test_no_question_reads_all_results(
    http: TestClient, post: Poster, store: Store, filled: dict[str, str]
) -> None:
    for address in ADDRESSES:
        with statements(store) as seen:
            assert http.get(address.format(**filled)).status_code == 200
        check(store, seen)
    with statements(store) as seen:
        post.made()
    check(store, seen)
    # Studies and hardware read no whole level of machines or runs, which grow with results.
    for address in ("/hardware/{hardware}", "/frameworks", "/cpu-vs-gpu", "/batch-size", "/trends"):
        with statements(store) as seen:
            assert http.get(address.format(**filled)).status_code == 200
        check(store, seen)
        with store.engine.connect() as connection:
            for statement, parameters in seen:
                named = parameters.values() if isinstance(parameters, dict) else parameters
                if {"machine", "run"} & {str(value) for value in named}:
                    steps = plan(connection, statement, parameters)
                    assert not re.match(WHOLE_LEVEL, steps), f"{statement}\n{steps}"


@pytest.mark.parametrize("narrowed", ["", "WHERE failure_kind = 'crashed'", "ORDER BY received_at"])
def test_the_check_finds_a_whole_scan(store: Store, narrowed: str) -> None:
    with pytest.raises(AssertionError, match="measurement"):
        check(store, [(f"SELECT * FROM measurement {narrowed}", ())])


def check(store: Store, seen: list[tuple[str, Any]]) -> None:
    selects = [item for item in seen if item[0].startswith("SELECT")]
    assert selects
    with store.engine.connect() as connection:
        for statement, parameters in selects:
            steps = plan(connection, statement, parameters)
            assert not re.search(WHOLE[connection.dialect.name], steps + "\n", re.MULTILINE), (
                f"{statement}\n{steps}"
            )


def test_all_that_a_median_needs_of_children_is_in_an_index() -> None:
    (index,) = (index for index in TABLE.indexes if index.name == "ix_aggregate_children")
    table = children.CHILD_OWNERS
    of_owners, of_places, of_sums = (
        set(re.findall(r"aggregate\.(\w+)", str(statement)))
        for statement in (
            outliers.QUARTILES,
            *(query(table) for query in (children.skipped_to, children.sums)),
        )
    )
    assert of_owners < of_places
    assert of_places | of_sums == set(index.columns.keys())
