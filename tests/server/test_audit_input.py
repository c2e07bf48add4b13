"""An audit of answers that no server gives: it names what is wrong in them, and never fails."""

import copy
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from sqlalchemy import select
from tests.fakes import integrity, results, said
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.projected import project
from typer.testing import CliRunner

from bench_protocol.signing.breaks import open_break
from bench_protocol.signing.receipts import Checkpoint
from bench_server.answers import log_entries
from bench_server.answers.log_entries import stated
from bench_server.answers.types.trust import StatedBreak
from bench_server.audit import dump, verify
from bench_server.audit.verify import Report, audit
from bench_server.cli.main import main as cli
from bench_server.db.store import Store, utc_now
from bench_server.db.tables import LogEntry, Submission
from bench_server.ingest.inbox import Inbox
from bench_server.log import breaks

ENTRIES = "/api/v1/log/entries?start=0"
STATE = "/api/v1/log"
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
# Of no type, too large, not in UTC, no Unicode, nested.
LEFT_OUT = object()
VALUES = (None, "", "x", -1, 2**70, 0.5, True, [], {}, ["\ud800"], "2026-11-21T05:00:00")


@pytest.fixture
def answers(post: Poster, store: Store) -> dict[str, bytes]:
    identity, _ = post.made(), post.made()
    assert said.act(post, "hide", result=identity).status_code == 200
    with store.writing() as session:
        breaks.state(session, AUTHORITY, "a disk failed", utc_now(), 4)
    seen: dict[str, bytes] = {}
    with store.reading() as session:
        fetch = log_entries.fetch_from(session, AUTHORITY, "none")
        assert audit(lambda path: seen.setdefault(path, fetch(path))).faults == ()
    return seen


def audited(answers: dict[str, bytes], path: str, document: object) -> Report | None:
    changed = answers | {path: json.dumps(document).encode()}

    def fetch(path: str) -> bytes:
        if path not in changed:
            raise dump.NoDump(path)
        return changed[path]

    with suppress(ValueError):
        return audit(fetch)
    return None


def board_of(answers: dict[str, bytes]) -> tuple[str, dict[str, Any]]:
    boards = ((path, json.loads(raw)) for path, raw in answers.items() if "leaderboard" in path)
    return next((path, document) for path, document in boards if document["rows"])


def dumped(folder: Path, answers: dict[str, bytes]) -> Path:
    file = folder / "dump.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, raw in answers.items():
            archive.writestr(path, raw)
    return file


def changed_documents(document: Any, part: Callable[[Any], Any]) -> Iterator[tuple[str, Any]]:
    for field in part(document):
        for value in (*VALUES, LEFT_OUT):
            changed = copy.deepcopy(document)
            part(changed)[field] = value
            if value is LEFT_OUT:
                del part(changed)[field]
            yield field, changed


@pytest.mark.long
def test_no_value_of_any_field_stops_an_audit(
    answers: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "TRIES", 1)
    entries, state = json.loads(answers[ENTRIES]), json.loads(answers[STATE])
    board_path, board = board_of(answers)
    clean = audited(answers, STATE, state)
    wrong = 0
    for path, document, part in (
        *((ENTRIES, entries, lambda page, n=n: page["records"][n]) for n in range(4)),
        (ENTRIES, entries, lambda page: page),
        (STATE, state, lambda answer: answer),
        (STATE, state, lambda answer: answer["breaks"][0]),
        (board_path, board, lambda page: page),
        (board_path, {**board, "rows": board["rows"][:1]}, lambda page: page["rows"][0]),
    ):
        for field, changed in changed_documents(document, part):
            report = audited(answers, path, changed)
            wrong += report is None or report != clean
            assert field != "commitment" or report is None, changed
    assert wrong > 300


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kept": Checkpoint(AUTHORITY.origin, 99, bytes(32))}, "keeps 99 entries, the log has 4"),
        ({"kept": Checkpoint(AUTHORITY.origin, 4, bytes(32))}, "keeps another tree"),
        ({"kept": Checkpoint(AUTHORITY.origin, 0, bytes(32))}, "keeps no entry, but a tree"),
        ({"last": "none"}, "keeps another tree"),
        ({"at": "2026-99-99T00:00:00.000000Z"}, "does not verify"),
        ({"reason": "a \u202e"}, "does not verify: not a statement"),
        ({"statement": "x"}, "does not verify: not a signed note"),
        ({"kept_size": 3}, "shown with other values"),
        ({"damage": "x"}, "shown with other values"),
    ],
)
def test_a_statement_of_a_loss_is_checked(
    answers: dict[str, bytes], change: dict[str, Any], says: str
) -> None:
    state = json.loads(answers[STATE])
    key = AUTHORITY.log_key
    right = stated(state["breaks"][0]["statement"], key)
    clean = audited(answers, STATE, state)
    assert clean is not None
    assert (clean.losses, clean.faults) == ((right,), ())
    if change.keys() <= {"kept", "last", "at", "reason"}:
        note = replace(open_break(right.statement, key), **change).signed(AUTHORITY.log)
        shown = stated(note, key)
    else:
        shown = replace(right, **change)
    state["breaks"] = [json.loads(TypeAdapter(StatedBreak).dump_json(shown))]
    report = audited(answers, STATE, state)
    assert report is not None
    (fault,) = report.faults
    assert says in fault.detail


def test_a_figure_that_is_no_number_is_refused(answers: dict[str, bytes]) -> None:
    """It would differ from no figure."""
    path, board = board_of(answers)
    board["rows"][0]["samples_per_second"] = float("nan")
    assert audited(answers, path, board) is None


def test_a_dump_with_a_wrong_field_is_one_line(answers: dict[str, bytes], tmp_path: Path) -> None:
    for field, value, says in (
        ("logged_at", None, "Input should be a valid datetime"),
        ("logged_at", "2026-11-21T05:00:00", "Input should have timezone"),
        ("commitment", "zz", "String should match pattern"),
        ("kind", "note", "Input should be 'result'"),
    ):
        document = json.loads(answers[ENTRIES])
        document["records"][1][field] = value
        file = dumped(tmp_path, answers | {ENTRIES: json.dumps(document).encode()})
        done = CliRunner().invoke(cli, ["verify-log", str(file)])
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
        assert f"unreadable log: {ENTRIES}: records.1.{field}: {says}" in done.stderr
        assert "; save it again (verify-log ADDRESS --save DUMP)" in done.stderr


def test_a_result_without_its_id_is_a_fault_of_its_entry(answers: dict[str, bytes]) -> None:
    document = json.loads(answers[ENTRIES])
    document["records"][2]["result_id"] = None
    report = audited(answers, ENTRIES, document)
    assert report
    faults = [(fault.log_index, fault.detail) for fault in report.faults]
    assert (2, "it should not be there: it has no result_id") in faults


def test_an_audit_names_an_edited_entry_of_each_chunk(post: Poster, store: Store) -> None:
    """A log of two chunks, each of which has an edited result."""
    key, edited = results.private_key(), (3, 258)
    made = [results.sealed(results.make_result(key=key), key) for _ in range(260)]
    for waiting in Inbox(store, AUTHORITY).accept(made, utc_now()):
        waiting.result(30)
    project(store)
    assert integrity.audited(store).faults == ()
    with store.writing() as session:
        for index in edited:
            of_result = select(LogEntry.submission_id).where(LogEntry.log_index == index)  # type: ignore[call-overload]
            row = session.get_one(Submission, session.scalars(of_result).one())
            row.payload = row.payload[:40] + bytes([row.payload[40] ^ 1]) + row.payload[41:]
    faults = [fault for fault in integrity.audited(store).faults if "edited" in fault.detail]
    assert tuple(fault.log_index for fault in faults) == edited


def test_a_damaged_dump_is_named(answers: dict[str, bytes], tmp_path: Path) -> None:
    file = dumped(tmp_path, answers)
    with zipfile.ZipFile(file) as archive:
        start = archive.getinfo(ENTRIES).header_offset + 30 + len(ENTRIES)
    raw = file.read_bytes()
    file.write_bytes(raw[:start] + b"x" * 40 + raw[start + 40 :])
    with dump.reading(file) as fetch, pytest.raises(dump.NoDump, match="damaged at /api/v1/log/en"):
        fetch(ENTRIES)
