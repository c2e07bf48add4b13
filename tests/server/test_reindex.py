"""What is derived can be computed again, and comes out the same."""

from typing import Any

from sqlalchemy import delete, select, text, update
from tests.fakes import results
from tests.fakes.authority import ORIGIN
from tests.fakes.client import Poster
from typer.testing import CliRunner

from bench_server import cli, reindex, schema
from bench_server.db import Store
from bench_server.tables import EnvironmentRow, Measurement, Standing

DERIVED = (Measurement, Standing, EnvironmentRow)


def derived(store: Store) -> list[list[dict[str, Any]]]:
    with store.reading() as session:
        return [
            sorted(
                (comparable(row.model_dump()) for row in session.scalars(select(table))),
                key=lambda row: str(row.get("submission_id") or row["id"]),
            )
            for table in DERIVED
        ]


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Means of logarithms depend in their last digit on the order in which they were taken in."""
    return {k: round(v, 9) if isinstance(v, float) else v for k, v in row.items()}


def fill(post: Poster) -> None:
    other = results.private_key(2)
    post.enroll(other)
    for step_ns in (1_000_000, 1_300_000, 900_000):
        post.made(step_ns=step_ns)
        post.made(step_ns=step_ns * 2, key=other)
        post.made(cell=results.make_cell("fashion-mlp"), step_ns=step_ns)
    post(results.make_failure())


def test_reindex_makes_the_same_rows(post: Poster, store: Store) -> None:
    fill(post)
    before = derived(store)
    assert all(before)
    with store.writing() as session:
        session.execute(delete(Standing))
        session.execute(update(Measurement).values(ns_per_sample=1, hardware="wrong"))
    assert reindex.reindex(store, ORIGIN) == 10
    assert derived(store) == before


def test_migrations_with_data_down_and_up(post: Poster, store: Store, database_url: str) -> None:
    fill(post)
    before = derived(store)
    answer = post.http.get("/api/v1/leaderboard").json()
    run = CliRunner()
    for target in ("0001", "head"):
        done = run.invoke(cli.main, ["migrate", "--to", target, "--database-url", database_url])
        assert done.exit_code == 0, done.output
    assert "rebuilt what is derived from 10 results" in done.output
    assert schema.current(store.engine) == schema.head()
    assert derived(store) == before
    assert post.http.get("/api/v1/leaderboard").json() == answer


def test_reindex_command_wants_the_schema(empty_database_url: str) -> None:
    done = CliRunner().invoke(cli.main, ["reindex", "--database-url", empty_database_url])
    assert done.exit_code == 2
    assert "bench-server migrate" in done.stderr


def test_the_oldest_schema_holds_what_was_received(post: Poster, store: Store) -> None:
    fill(post)
    schema.migrate(store.engine, "0001")
    with store.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM submission")) == 10
        assert connection.scalar(text("SELECT count(*) FROM measurement")) == 10
    schema.migrate(store.engine)
