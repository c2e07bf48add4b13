"""Bulk SQL: statements with constant text, and rows passed directly to the driver."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from bench_server.db.bulk import TOGETHER, BulkWrite, TextRows, among, numbered
from bench_server.db.store import Store
from bench_server.db.tables import LogCheckpoint, LogNode, Owner, SigningKey

OWNERS = Owner.__table__  # type: ignore[attr-defined]
NODES = LogNode.__table__  # type: ignore[attr-defined]
KEYS = SigningKey.__table__  # type: ignore[attr-defined]
AT = datetime(2026, 11, 23, 12, 30, 15, 250_000, tzinfo=UTC)


@pytest.mark.parametrize("wanted", [[], ["a"], ["a", "b'); --"], ["none", "c"], list("abcdef")])
def test_among_finds_what_is_in_a_list(store: Store, wanted: list[str]) -> None:
    statement = select(OWNERS.c.label).where(among(OWNERS.c.label, "labels"))
    labels = {"a", "b'); --", "c", "Ü"}
    with store.writing() as session:
        connection = session.connection()
        BulkWrite(insert(OWNERS)).rows(
            connection, [{"label": x, "confirmed": True} for x in labels]
        )
        assert set(connection.scalars(statement, {"labels": wanted})) == labels & set(wanted)


def test_among_takes_numbers(store: Store) -> None:
    positions = [0, 1, 2**40]
    statement = select(NODES.c.position).where(among(NODES.c.position, "positions"))
    rows = [{"level": 0, "position": at, "hash": bytes(32)} for at in positions]
    with store.writing() as session:
        connection = session.connection()
        BulkWrite(insert(NODES)).rows(connection, rows)
        parameters = {"positions": [1, 2**40, 7]}
        assert set(connection.scalars(statement, parameters)) == {1, 2**40}


def test_rows_are_kept_as_sqlalchemy_keeps_them(store: Store) -> None:
    """Bytes, booleans, nothing, and moments of any zone; what a row has besides is left out."""
    row = {
        "spki": b"\x00\xff",
        "name": None,
        "owner": "o",
        "status": "active",
        "revoked_reason": None,
        "compromised_since": None,
        "first_key_id": "0" * 64,
        "enrolled_at": AT.astimezone(timezone(timedelta(hours=5, minutes=30))),
        "license": "CC-BY-4.0",
    }
    row = {name: row.get(name) for name in KEYS.c.keys()}  # noqa: SIM118 - columns, not names
    with store.writing() as session:
        connection = session.connection()
        connection.execute(insert(OWNERS), {"label": "o", "confirmed": False})
        connection.execute(insert(KEYS), row | {"key_id": "1" * 64})
        BulkWrite(insert(KEYS)).rows(connection, [row | {"key_id": "2" * 64, "besides": object()}])
        first_row, second_row = connection.execute(select(KEYS).order_by(KEYS.c.key_id)).mappings()
    assert dict(first_row) | {"key_id": ""} == dict(second_row) | {"key_id": ""}
    assert second_row["enrolled_at"] == AT


def test_a_statement_may_have_one_parameter(store: Store) -> None:
    with store.writing() as session:
        connection = session.connection()
        BulkWrite(insert(OWNERS)).rows(connection, [{"label": "a", "confirmed": False}])
        confirm = BulkWrite(update(OWNERS).values(confirmed=bindparam("to")))
        confirm.rows(connection, [{"to": True}])
        assert connection.scalar(select(OWNERS.c.confirmed)) is True


def test_rows_are_given_as_a_table(store: Store) -> None:
    text_rows = TextRows("label", "note")
    rows = [("a", "1"), ("\"b'", "Ω, {}"), ("a", "1"), ("", "\\")]
    with store.reading() as session:
        dialect = session.connection().dialect.name
        table, columns = text_rows.table(dialect)
        query = select(*columns.values()).select_from(table)
        read_rows = session.connection().execute(query, text_rows.values(dialect, rows)).all()
    assert [tuple(row) for row in read_rows] == rows


@pytest.mark.parametrize("count", [0, 1, TOGETHER, TOGETHER + 2])
def test_every_statement_asks_as_many_questions(count: int) -> None:
    all_parameters = list(numbered([{"at": n, "by": -n} for n in range(count)]))
    numbers = [parameters[f"at_{n}"] for parameters in all_parameters for n in range(TOGETHER)]
    last = [count - 1] * (-count % TOGETHER)
    assert numbers == [*range(count), *last]
    assert all(p[f"by_{n}"] == -p[f"at_{n}"] for p in all_parameters for n in range(TOGETHER))


def test_no_rows_are_no_statement(store: Store) -> None:
    with store.writing() as session:
        BulkWrite(update(OWNERS).values(confirmed=True)).rows(session.connection(), [])


def test_what_the_database_refuses_is_said_as_elsewhere(store: Store) -> None:
    write = BulkWrite(insert(LogCheckpoint.__table__))  # type: ignore[attr-defined]
    with pytest.raises(IntegrityError), store.writing() as session:
        write.rows(session.connection(), [{"size": 1, "note": "a"}, {"size": 1, "note": "b"}])
