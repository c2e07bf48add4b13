"""A list is one parameter of a statement; inserts tell which rows a constraint refused."""

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from bench_server.db.lists import among
from bench_server.db.store import Store
from bench_server.db.tables import LogCheckpoint, LogNode, Owner, table_of
from bench_server.db.upsert import insert_new, upsert

OWNERS, NODES, CHECKPOINTS = map(table_of, (Owner, LogNode, LogCheckpoint))


@pytest.mark.parametrize("wanted", [[], ["a"], ["a", "b'); --"], ["none", "c"], list("abcdef")])
def test_among_finds_what_is_in_a_list(store: Store, wanted: list[str]) -> None:
    statement = select(OWNERS.c.label).where(among(OWNERS.c.label, "labels"))
    labels = {"a", "b'); --", "c", "Ü"}
    with store.writing() as session:
        connection = session.connection()
        connection.execute(insert(OWNERS), [{"label": x, "confirmed": True} for x in labels])
        assert set(connection.scalars(statement, {"labels": wanted})) == labels & set(wanted)


def test_among_takes_numbers(store: Store) -> None:
    positions = [0, 1, 2**40]
    statement = select(NODES.c.position).where(among(NODES.c.position, "positions"))
    rows = [{"level": 0, "position": at, "hash": bytes(32)} for at in positions]
    with store.writing() as session:
        connection = session.connection()
        connection.execute(insert(NODES), rows)
        asked = {"positions": [1, 2**40, 7]}
        assert set(connection.scalars(statement, asked)) == {1, 2**40}


def test_upsert_inserts_and_replaces(store: Store) -> None:
    with store.writing() as session:
        connection = session.connection()
        upsert(connection, OWNERS, [])
        for confirmed in (False, True):
            labels = ("a", "b") if confirmed else ("a",)
            rows = [{"label": label, "confirmed": confirmed} for label in labels]
            upsert(connection, OWNERS, rows)
        stored = connection.execute(select(OWNERS).order_by(OWNERS.c.label)).all()
    assert [(row.label, row.confirmed) for row in stored] == [("a", True), ("b", True)]


def test_insert_new_returns_the_inserted_keys(store: Store) -> None:
    """A row that is there already, and the second of two equal ones, are refused."""
    with store.writing() as session:
        connection = session.connection()
        assert insert_new(connection, OWNERS, []) == set()
        rows = [{"label": label, "confirmed": False} for label in ("a", "b", "a")]
        assert insert_new(connection, OWNERS, rows) == {"a", "b"}
        again = [{"label": label, "confirmed": True} for label in ("b", "c")]
        assert insert_new(connection, OWNERS, again) == {"c"}
        stored = connection.execute(select(OWNERS).order_by(OWNERS.c.label)).all()
    assert [(row.label, row.confirmed) for row in stored] == [
        ("a", False),
        ("b", False),
        ("c", True),
    ]


def test_insert_new_raises_for_other_constraints(store: Store) -> None:
    with pytest.raises(IntegrityError), store.writing() as session:
        insert_new(session.connection(), CHECKPOINTS, [{"size": 1, "note": None}])
