"""A damaged database: verify-log finds it, pages say it, and nothing ends in a traceback."""

import math
import os
import re
import sqlite3
import subprocess
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Row, Update, select, update
from sqlalchemy.exc import DBAPIError, StatementError
from tests.evidence.attacks import damage
from tests.fakes import results, said, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.projected import project
from typer.testing import CliRunner

from bench_server.answers.log_entries import fetch_from
from bench_server.audit import database
from bench_server.audit.verify import audit
from bench_server.cli.main import main as cli
from bench_server.db.store import Store, utc_now
from bench_server.db.tables import Submission
from bench_server.log import breaks, reader
from bench_server.ranking import published

DAILY = Path(__file__).resolve().parents[2] / "deploy" / "daily.sh"
# Not in the log: what the queue needs.
NOT_DERIVED = database.OF_THE_QUEUE
sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def other(value: Any) -> Any:
    """Another value of a column's type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, datetime):
        return value + timedelta(microseconds=1)
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1")
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    return 1 if value is None else value + 1


def test_each_value_that_follows_from_the_log_is_compared(post: Poster, store: Store) -> None:
    """Every column at every level, the last bits of a time included, but for what the database
    itself refuses to store."""
    post.enroll(results.private_key(2))
    trusted.send(store, results.private_key(2), [1_000_000, 1_000_500])
    with store.writing() as session:
        published.import_published(session)
    project(store)
    assert list(database.faults(store)) == []
    compared = 0
    for table in database.FOLLOWING:
        (key,) = table.primary_key.columns
        with store.reading() as session:
            rows = session.connection().execute(select(table)).all()
        for row in {getattr(row, "level", ""): row for row in rows}.values():
            this = update(table).where(key == row._mapping[key])
            changed = {name for name in row._mapping if name != key.name} - NOT_DERIVED
            changed -= {name for name in changed if not stored(store, this, name, row)}
            said = " ".join(fault.detail for fault in database.faults(store))
            assert {
                name for name in changed if f"{row._mapping[key]}: {name}: " not in said
            } == set()
            compared += len(changed)
            with store.writing() as session:
                session.execute(this.values(dict(row._mapping)))
    assert list(database.faults(store)) == []
    assert compared > 100


def stored(store: Store, this: Update, name: str, row: Row[Any]) -> bool:
    """Whether the database took another value of a column."""
    try:
        with store.writing() as session:
            session.execute(this.values({name: other(row._mapping[name])}))
    except (DBAPIError, StatementError):
        return False
    return True


def test_a_hidden_result_is_compared_too(post: Poster, store: Store) -> None:
    """Answers withhold its envelope, and so an audit of them sees nothing."""
    identity = post.made()
    assert said.act(post, "hide", result=identity).status_code == 200
    with store.writing() as session:
        row = session.get_one(Submission, identity)
        row.payload = row.payload[:40] + bytes([row.payload[40] ^ 1]) + row.payload[41:]
    found = [fault.detail for fault in database.faults(store)]
    assert "its envelope is not the one that it commits to" in found


@sqlite
@pytest.mark.parametrize(
    ("statement", "address"),
    [
        ("measurement SET received_at = 'x'", "/results"),
        ("measurement SET verdicts = '{'", "/results/ID"),
        ("measurement SET verdicts = '[{\"chock\":1}]'", "/results/ID"),
        (
            "submission SET payload ="
            " CAST(replace(CAST(payload AS TEXT), '\"recipe\"', '\"rucipe\"') AS BLOB)",
            "/results/ID",
        ),
        ("measurement SET hardware = CAST(x'ff' AS TEXT)", "/results"),
        ("submission SET payload = x'7b'", "/results/ID"),
        ("submission SET outlier = '{'", "/log/entries"),
        ("log_entry SET envelope = x'7b'", "/log/entries"),
        ("log_checkpoint SET note = 'x'", "/log"),
        ("sqlite_master SET rootpage = 3 WHERE name = 'measurement'", "/results"),
    ],
)
def test_a_row_that_cannot_be_read_is_said(
    post: Poster, store: Store, statement: str, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    identity = post.made()
    store.close()
    with closing(sqlite3.connect(str(store.engine.url.database))) as connection:
        for words in ("PRAGMA ignore_check_constraints = ON", "PRAGMA writable_schema = ON"):
            connection.execute(words)
        connection.execute(f"UPDATE {statement}")
        connection.commit()
    path = address.replace("ID", identity)
    app = post.http.app._app
    http = TestClient(app, raise_server_exceptions=False)
    answer = http.get(f"/api/v1{path}")
    assert (answer.status_code, answer.json()["code"]) == (500, "database_damaged")
    assert "bench-server verify-log" in answer.json()["hint"]
    page = http.get(path.replace("/log/entries", "/log"), headers={"Accept": "text/html"})
    assert page.status_code == 200 or "verify-log" in page.text
    url = str(store.engine.url)
    done = CliRunner().invoke(cli, ["verify-log", "--database-url", url])
    assert done.exit_code in (1, 2), done.output
    assert not re.search("Traceback|pydantic|validation error", done.output + caplog.text)
    assert "cannot be read" in done.output or "the database refuses this" in done.output


@sqlite
@pytest.mark.parametrize("note", ["'x'", "replace(note, 'kept', 'kopt')", "x'ff'", "1"])
@pytest.mark.parametrize("as_text", [True, False])
def test_a_damaged_statement_of_a_loss_hides_no_page(
    post: Poster, store: Store, note: str, as_text: bool
) -> None:
    """Agents read the log there before they send anything."""
    post.made()
    with store.writing() as session:
        breaks.state(session, AUTHORITY, "a disk failed", utc_now(), reader.size(session))
    store.close()
    with closing(sqlite3.connect(str(store.engine.url.database))) as connection:
        value = f"CAST({note} AS TEXT)" if as_text else note
        connection.execute(f"UPDATE log_break SET note = {value}")
        connection.commit()
    http = TestClient(post.http.app._app, raise_server_exceptions=False)
    answer = http.get("/api/v1/log")
    assert answer.status_code == 200
    (shown,) = answer.json()["breaks"]
    assert shown["damage"]
    assert shown["kept_size"] is None
    page = http.get("/log", headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert "This statement is damaged" in page.text
    with store.reading() as session:
        report = audit(fetch_from(session, AUTHORITY, "none"))
    assert "a statement of a loss does not verify" in report.faults[0].detail


def test_flipped_bits_are_found(tmp_path: Path) -> None:
    """``make audit`` flips 200."""
    wrong = [line for line in damage.flips(tmp_path, 3) if not line.found]
    assert wrong == []


def test_the_daily_job_verifies_and_shows_a_failure(tmp_path: Path) -> None:
    """After damage is found everything else is done, and no older backup is deleted."""
    calls, damaged, backups = tmp_path / "calls", tmp_path / "damaged", tmp_path / "backups"
    program = tmp_path / "bench-server"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\ntest "$1" != verify-log || test ! -e {damaged}\n'
    )
    program.chmod(0o700)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TRAINMARK_BACKUPS": str(backups),
        "BENCH_SERVER_DUMPS_DIR": str(tmp_path),
    }
    for is_damaged, keep_days in ((False, 30), (True, 36500), (False, 30)):
        damaged.touch() if is_damaged else damaged.unlink(missing_ok=True)
        calls.unlink(missing_ok=True)
        done = subprocess.run([DAILY, "--once"], env=environment, check=False)
        assert (done.returncode != 0) is is_damaged
        assert (backups / "failed").exists() is is_damaged
        assert calls.read_text().splitlines() == [
            "verify-log",
            f"backup --daily {backups} --keep-days {keep_days}",
            f"keys archive {backups}/keys.tar",
            f"export --daily {tmp_path}",
        ]
