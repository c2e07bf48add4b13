"""A list is one parameter of a statement; inserts tell which rows a constraint refused."""

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from bench_server.db.lists import among
from bench_server.db.store import Store
from bench_server.db.tables import LogCheckpoint, LogNode, Owner, table_of
from bench_server.db.upsert import insert_new, upsert

OWNERS, NODES, CHECKPOINTS = map(table_of, (Owner, LogNode, LogCheckpoint))


def test_among_finds_what_is_in_a_list(store: Store) -> None:
    labels, positions = {"a", "b'); --", "c", "Ü"}, [0, 1, 2**40]
    nodes = [{"level": 0, "position": at, "hash": bytes(32)} for at in positions]
    with store.writing() as session:
        connection = session.connection()
        connection.execute(insert(OWNERS), [{"label": x, "confirmed": True} for x in labels])
        found = select(OWNERS.c.label).where(among(OWNERS.c.label, "labels"))
        for wanted in ([], ["a"], ["a", "b'); --"], ["none", "c"], list("abcdef")):
            assert set(connection.scalars(found, {"labels": wanted})) == labels & set(wanted)
        connection.execute(insert(NODES), nodes)
        found = select(NODES.c.position).where(among(NODES.c.position, "positions"))
        assert set(connection.scalars(found, {"positions": [1, 2**40, 7]})) == {1, 2**40}


def test_insert_new_returns_the_inserted_keys_and_upsert_replaces(store: Store) -> None:
    def rows(labels: str, confirmed: bool) -> list[dict[str, object]]:
        return [{"label": label, "confirmed": confirmed} for label in labels]

    with store.writing() as session:
        connection = session.connection()
        assert insert_new(connection, OWNERS, []) == set()
        assert insert_new(connection, OWNERS, rows("aba", False)) == {"a", "b"}
        assert insert_new(connection, OWNERS, rows("bc", True)) == {"c"}
        upsert(connection, OWNERS, [])
        upsert(connection, OWNERS, rows("ad", True))
        stored = connection.execute(select(OWNERS.c.label, OWNERS.c.confirmed)).all()
    assert sorted(map(tuple, stored)) == [("a", True), ("b", False), ("c", True), ("d", True)]


def test_insert_new_raises_for_other_constraints(store: Store) -> None:
    with pytest.raises(IntegrityError), store.writing() as session:
        insert_new(session.connection(), CHECKPOINTS, [{"size": 1, "note": None}])
