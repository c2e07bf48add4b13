"""Base classes and column types of the tables."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar

import sqlalchemy
from sqlalchemy import BigInteger, DateTime, Dialect, MetaData, TypeDecorator
from sqlmodel import Field, SQLModel

from ...errors import DamagedDatabase

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC with microseconds; refuses moments without a time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment needs a time zone")
        return value.astimezone(UTC)

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], datetime | None] | None:
        read = super().result_processor(dialect, coltype)

        def moment(value: Any) -> datetime | None:
            try:
                return read(value) if read else value
            except (ValueError, TypeError) as error:
                raise DamagedDatabase(str(error)) from error

        return moment

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class Table(SQLModel):
    """Base of the tables: constraints get their names from one convention."""

    metadata: ClassVar[MetaData] = MetaData(naming_convention=NAMING)


def table_of(model: Any) -> sqlalchemy.Table:
    """The SQLAlchemy table of a model, for statements that need no mapped objects."""
    name: str = model.__tablename__
    return Table.metadata.tables[name]


class InCell(SQLModel):
    """Columns of whatever belongs to one hardware in one cell; its digest is the workload's."""

    hardware: str = Field(max_length=400)
    hardware_slug: str = Field(max_length=400)
    workload: str = Field(max_length=64)
    workload_digest: str = Field(max_length=64)
    framework: str = Field(max_length=64)
    device: str = Field(max_length=8)
    recipe: str = Field(max_length=16)
    batch_size: int = Field(sa_type=BigInteger)
    precision: str = Field(max_length=32)
    data: str = Field(max_length=16)


class InSetup(InCell):
    """Columns of a figure, which belongs to a cell and to a kind of timing, ``long`` or ``short``;
    short where nothing was timed."""

    timing: str = Field(max_length=8)
