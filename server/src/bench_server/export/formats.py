"""Export formats: any answer as CSV, JSON lines or Parquet, streamed.

Columns are the fields of the answer's type; lists and objects become JSON text. In CSV a text that
a spreadsheet would read as a formula gets a leading apostrophe, as OWASP advises.
"""

import csv
import io
import json
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import fields
from datetime import datetime
from itertools import islice
from typing import Any, Literal

Format = Literal["csv", "jsonl", "parquet"]
MEDIA_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
# Rows in memory at a time. With their verdicts they have about 10 kB each, and each thread of the
# server keeps the memory that it once needed. A batch of Parquet is a row group.
BATCH: dict[Format, int] = {"csv": 100, "jsonl": 100, "parquet": 1000}
FORMULA = ("=", "+", "-", "@", "\t", "\r")
PLAIN = (str, int, float, bool, datetime)


def columns_of(answer: type) -> dict[str, type]:
    """Names and plain types of an answer's fields; other types become JSON text."""
    hints = typing.get_type_hints(answer)
    return {field.name: _plain(hints[field.name]) for field in fields(answer)}


def stream(
    form: Format, columns: dict[str, type], rows: Iterable[dict[str, Any]]
) -> Iterator[bytes]:
    waiting = (_row(columns, row) for row in rows)
    write = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[form]
    return write(columns, iter(lambda: list(islice(waiting, BATCH[form])), []))


Batches = Iterator[list[list[Any]]]


def _csv(columns: dict[str, type], batches: Batches) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(columns)
    for batch in batches:
        writer.writerows([_cell(value) for value in row] for row in batch)
        yield _taken(buffer).encode()
    yield _taken(buffer).encode()


def _jsonl(columns: dict[str, type], batches: Batches) -> Iterator[bytes]:
    for batch in batches:
        rows = (dict(zip(columns, row, strict=True)) for row in batch)
        yield "".join(json.dumps(row, default=datetime.isoformat) + "\n" for row in rows).encode()


def _parquet(columns: dict[str, type], batches: Batches) -> Iterator[bytes]:
    import pyarrow as pa  # here: the import takes half a second and only Parquet needs it
    from pyarrow import parquet

    kinds = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    sink = _Sink()
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for batch in batches:
            table = dict(zip(columns, zip(*batch, strict=True), strict=True))
            writer.write_table(pa.table(table, schema=schema))
            yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _taken(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


def _row(columns: dict[str, type], row: dict[str, Any]) -> list[Any]:
    values = (row[name] for name in columns)
    return [
        value if value is None or isinstance(value, PLAIN) else json.dumps(value)
        for value in values
    ]


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _plain(hint: Any) -> type:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for option in options:
        if option in PLAIN:
            return option  # type: ignore[no-any-return]
        if typing.get_origin(option) is Literal:
            return type(typing.get_args(option)[0])
    return str
