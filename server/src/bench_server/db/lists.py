"""Lists as one parameter of a statement, so that its text is the same for every length."""

import json
from typing import Any

from sqlalchemy import ARRAY, Boolean, ColumnElement, Dialect, String, TypeDecorator, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine


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
        """No grouping: SQLite finds no index for ``(...) = 1``."""
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
