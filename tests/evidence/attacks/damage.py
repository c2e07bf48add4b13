"""Flipped bits in the file of an SQLite database, as a bad disk or memory causes them.

A flip counts if it changes a stored row or makes one unreadable. ``verify-log`` must find it, and
no page may show another answer than before in silence. The same seed flips the same bits of a file
that is not the same: ids, salts and challenges are drawn at random.
"""

import logging
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from fastapi.testclient import TestClient
from tests.fakes import results, said, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import NO_LIMITS, Poster
from tests.fakes.projected import settle

from bench_protocol.payload import acts
from bench_server.answers.log_entries import fetch_from
from bench_server.app import create_app
from bench_server.audit import database
from bench_server.audit.verify import audit
from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.ingest import moderation
from bench_server.log import writer
from bench_server.ranking import published

from . import Line

KEYS = [results.private_key(seed) for seed in (1, 2, 3)]
NOW = trusted.BEGAN + timedelta(hours=6)
# Of a hundred flips verify-log finds at least this number; pages differ without an error for none.
FOUND = 0.95
MOST_PAGES = 150


class Missed(NamedTuple):
    """A flip that verify-log does not find: the rows that it changes, and the pages that differ."""

    rows: str
    pages: tuple[str, ...]


def flips(folder: Path, count: int = 200, seed: int = 53) -> Iterator[Line]:
    """Flip bits of a database. Findings are shown; the server's log messages are not."""
    logging.disable()
    try:
        yield from _flips(folder, count, seed)
    finally:
        logging.disable(logging.NOTSET)


def _flips(folder: Path, count: int, seed: int) -> Iterator[Line]:
    file = folder / "server.db"
    fill(file)
    raw, rows, shown = file.read_bytes(), stored(file), pages(file)
    whole = (
        f"{len(findings(file))} findings, {len(shown)} pages, {sum(map(len, rows.values()))} rows"
    )
    yield Line("none: the database as it is", whole, not findings(file))
    flipped, by_check, missed = folder / "flipped.db", Counter[str](), []
    bits, tried = random.Random(seed), 0
    for number in range(count):
        while True:
            tried += 1
            damaged = bytearray(raw)
            damaged[bits.randrange(len(raw))] ^= 1 << bits.randrange(8)
            flipped.write_bytes(damaged)
            if (now := stored(flipped)) != rows:
                break
        checks = {_check(words) for words in findings(flipped)}
        flipped.write_bytes(damaged)
        by_check.update(checks or {"nothing"})
        # Pages take most of the time: those of each tenth flip, and of each that is not found.
        answers = pages(flipped, shown) if not checks or number % 10 == 0 else {}
        for page, answer in answers.items():
            if answer[0] == 500 and b"verify-log" not in answer[1]:
                yield Line(f"{page} of a damaged database", f"{answer[1][:200]!r}", found=False)
        if not checks:
            differing = (p for p in shown if answers[p][0] == 200 and answers[p] != shown[p])
            missed.append(Missed(_changed(rows, now), tuple(differing)))
        for extra in folder.glob("flipped.db?*"):
            extra.unlink()
    found = count - len(missed)
    words = ", ".join(f"{name} {number}" for name, number in by_check.most_common())
    of_all = f"{found} of {count} found ({tried} flips in {len(raw):,} bytes): {words}"
    yield Line("flips that change a stored row", of_all, found >= FOUND * count)
    for one in missed:
        seen = ", ".join(one.pages) or "no page shows it"
        yield Line(f"missed: {one.rows}", seen, not one.pages)


def fill(file: Path) -> None:
    """A small database of every kind of row, in one file."""
    store = Store(f"sqlite:///{file}")
    migrate.migrate(store.engine)
    with store.writing() as session:
        writer.begin(session, AUTHORITY)
        published.import_published(session)
    with _client(store) as http:
        post = Poster(http)
        for key in KEYS:
            post.enroll(key)
        for owner in (acts.first_owner(results.key_id(key)) for key in KEYS[:2]):
            moderation.decide(store, AUTHORITY, NOW, "confirm", owner=owner)
        for number, key in enumerate(KEYS):
            trusted.send(store, key, [10_000_000 + 1_000 * number] * 2)
        made = [post.made(cell=results.make_cell("fashion-mlp"), step_ns=n) for n in (10**6, 10**7)]
        post(results.make_failure())
        said.act(post, "hide", result=made[0], server_origin=AUTHORITY.origin)
        said.act(post, "withdraw", result=made[1], server_origin=AUTHORITY.origin)
    settle(store)
    store.close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")


def stored(file: Path) -> Mapping[str, object]:
    """All rows as they are in the file, by table; an error in place of a table's rows."""
    with closing(sqlite3.connect(f"file:{file}?immutable=1", uri=True)) as connection:
        connection.text_factory = bytes
        try:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = sorted(name.decode() for (name,) in found)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return {"sqlite_master": str(error)}
        return {name: _rows(connection, name) for name in names}


def _rows(connection: sqlite3.Connection, table: str) -> object:
    try:
        # An index may have the columns of a small table, and not its rows.
        return sorted(map(repr, connection.execute(f'SELECT * FROM "{table}" NOT INDEXED')))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)


def findings(file: Path) -> list[str]:
    """What verify-log says, without its start: it opens the same database with the same checks."""
    found: list[str] = []
    store = Store(f"sqlite:///{file}")
    try:
        migrate.require_current(store.engine)
        with store.writing() as session:
            writer.begin(session, AUTHORITY)
        with store.reading() as session:
            found += [f.detail for f in audit(fetch_from(session, AUTHORITY, "none")).faults]
    except Exception as error:
        found.append(f"the log cannot be read: {error}")
    found += [fault.detail for fault in database.faults(store)]
    store.close()
    return found


def _check(words: str) -> str:
    kinds = ("SQLite's integrity check", "cannot be read", "follows from", "follow from")
    return next((kind for kind in kinds if kind in words), "audit of the log")


def pages(file: Path, of: Mapping[str, Any] | None = None) -> dict[str, tuple[int, bytes]]:
    """The answers of a server, by address: of every link from its first page, or of these."""
    store = Store(f"sqlite:///{file}")
    with _client(store) as http:
        answers, waiting = {}, [*(of or ("/", "/api/v1/results", "/api/v1/log/entries"))]
        while waiting and len(answers) < MOST_PAGES:
            path = waiting.pop(0)
            answer = http.get(path, headers={"Accept": "text/html"})
            answers[path] = (answer.status_code, answer.content)
            if of is None:
                links = re.findall(r'href="(/[^"#]*)"', answer.text)
                new = (link for link in links if not link.startswith("/static"))
                waiting += [link for link in dict.fromkeys(new) if link not in {*answers, *waiting}]
    store.close()
    return answers


def _client(store: Store) -> TestClient:
    app = create_app(NO_LIMITS, store, lambda: NOW, AUTHORITY, stale_seconds=0)
    return TestClient(app, raise_server_exceptions=False)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    table = next(name for name in before if before[name] != after.get(name))
    pairs = zip(before[table], after[table], strict=False)
    old, new = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    return f"{table}: {old[max(0, at - 25) : at + 15]!r}, then {new[max(0, at - 25) : at + 15]!r}"
