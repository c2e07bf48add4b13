"""The statements that a database executes, for tests that count them or read their plans."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from bench_server.db.store import Store


@contextmanager
def statements(store: Store) -> Iterator[list[tuple[str, Any]]]:
    executed: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        executed.append((statement, parameters))

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        yield executed
    finally:
        event.remove(store.engine, "before_cursor_execute", note)
