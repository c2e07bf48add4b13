"""Statements that every ingest runs: their text is the same whatever they are given, and many rows
go to the driver without a layer between.

SQLAlchemy writes them and its types convert values. A text that never changes is put together once,
and prepared once by the driver and the database; a list written out in it would make it another one
for each length.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    Boolean,
    ColumnElement,
    Connection,
    Dialect,
    FromClause,
    Insert,
    String,
    TypeDecorator,
    Update,
    bindparam,
    func,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

# How many questions one statement asks.
TOGETHER = 8


class ListParameter(TypeDecorator[Any]):
    """A list of values as one parameter: an array in PostgreSQL, JSON in SQLite."""

    impl = String
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return ARRAY(self.item) if dialect.name == "postgresql" else String()

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return list(value) if dialect.name == "postgresql" else json.dumps(list(value))


class InList(FunctionElement[bool]):
    """SQL: whether a column's value is in a list."""

    type = Boolean()
    inherit_cache = True

    def self_group(self, against: Any = None) -> "InList":
        """As it is: what SQLite would be told otherwise, ``... = 1``, finds no index."""
        return self


@compiles(InList)
def _any(element: InList, compiler: Any, **kwargs: Any) -> str:
    column, values = (compiler.process(clause, **kwargs) for clause in element.clauses)
    return f"{column} = ANY ({values})"


@compiles(InList, "sqlite")
def _in_json(element: InList, compiler: Any, **kwargs: Any) -> str:
    column, values = (compiler.process(clause, **kwargs) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608 - names alone


def among(column: Any, name: str) -> ColumnElement[bool]:
    """SQL: whether the column's value is in the list parameter of this name."""
    return InList(column, bindparam(name, type_=ListParameter(column.type)))


class TextRows:
    """Rows of texts that a statement is given, as a table: an array for each column in PostgreSQL,
    one JSON document in SQLite."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def table(self, dialect: str) -> tuple[FromClause, Mapping[str, ColumnElement[str]]]:
        """The table, and its columns by name."""
        if dialect == "postgresql":
            arrays = (bindparam(name, type_=ARRAY(String)) for name in self._names)
            table = func.unnest(*arrays).table_valued(*self._names).render_derived()
            return table, dict(table.c.items())
        table = func.json_each(bindparam("given", type_=String)).table_valued("value")
        columns = (
            func.json_extract(table.c.value, f"$[{place}]") for place in range(len(self._names))
        )
        return table, dict(zip(self._names, columns, strict=True))

    def values(self, dialect: str, rows: Sequence[Sequence[str]]) -> dict[str, Any]:
        """The rows, at least one, as the statement's parameters."""
        if dialect == "postgresql":
            columns = map(list, zip(*rows, strict=True))
            return dict(zip(self._names, columns, strict=True))
        return {"given": json.dumps(rows)}


def numbered(questions: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Parameters for a statement that asks ``TOGETHER`` questions, each name with the number of its
    question; where there are fewer, the last is asked again."""
    for start in range(0, len(questions), TOGETHER):
        block = list(questions[start : start + TOGETHER])
        block += block[-1:] * (TOGETHER - len(block))
        yield {
            f"{name}_{number}": value
            for number, question in enumerate(block)
            for name, value in question.items()
        }


class _Compiled(NamedTuple):
    text: str
    names: tuple[str, ...]
    converters: Mapping[str, Callable[[Any], Any]]


class BulkWrite:
    """An insert or update of many rows, without SQLAlchemy's cost for each value."""

    def __init__(self, statement: Insert | Update) -> None:
        self._statement = statement
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the rows, each with a value for every parameter; what else it has is left out."""
        made = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        converted = (
            {**row, **{name: convert(row[name]) for name, convert in made.converters.items()}}
            for row in rows
        )
        values: list[Any]
        if connection.dialect.positional:
            values = [tuple(map(row.__getitem__, made.names)) for row in converted]
        else:
            values = [{name: row[name] for name in made.names} for row in converted]
        if values:
            connection.exec_driver_sql(made.text, values)

    def _compile(self, dialect: Dialect) -> _Compiled:
        compiled: Any = self._statement.compile(dialect=dialect)
        # What the drivers take as it is need not be converted.
        converters = {
            name: convert
            for name, bind in compiled.binds.items()
            if isinstance(bind.type, TypeDecorator)
            and (convert := bind.type.dialect_impl(dialect).bind_processor(dialect)) is not None
        }
        names = tuple(compiled.positiontup or compiled.binds)
        made = self._compiled[dialect.name] = _Compiled(str(compiled), names, converters)
        return made
