"""Insert rows, or replace those with the same primary key."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Executable, Table
from sqlalchemy.dialects import postgresql, sqlite


def upsert(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, added: bool = False
) -> None:
    """Write rows that have a value for every column of the table; ``added`` to stored numbers."""
    if rows:
        connection.execute(_upsert(connection.dialect.name, table, added), list(rows))


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> set[Any]:
    """Insert the rows that no constraint refuses; returns their primary keys, of one column."""
    if not rows:
        return set()
    return set(connection.scalars(_insert_new(connection.dialect.name, table), list(rows)))


def _insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


@cache
def _upsert(dialect: str, table: Table, added: bool) -> Executable:
    statement = _insert(dialect, table)
    new = {c.name: statement.excluded[c.name] for c in table.c if not c.primary_key}
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_={name: table.c[name] + value for name, value in new.items()} if added else new,
    )


@cache
def _insert_new(dialect: str, table: Table) -> Any:
    (key,) = table.primary_key
    return _insert(dialect, table).on_conflict_do_nothing().returning(key)
