"""The server's log: everything accepted is in it, proofs hold, and nothing is signed twice."""

import base64
import json
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select
from tests.fakes import results
from tests.fakes.authority import AUTHORITY, ORIGIN
from tests.fakes.client import Poster, get
from tests.fakes.integrity import audited

from bench_protocol.base import strict_json
from bench_protocol.signing import envelope, merkle, note, receipts, tiles
from bench_server.db.store import Store
from bench_server.db.tables import LogCheckpoint
from bench_server.log import writer
from bench_server.log.server_keys import KeysProblem, load_authority

NDJSON = {"Content-Type": "application/x-ndjson"}


def key_of(http: httpx.Client) -> note.NoteKey:
    return note.parse_key(http.get("/api/v1/log").json()["key"])


def checkpoint(http: httpx.Client) -> receipts.Checkpoint:
    return receipts.open_checkpoint(http.get("/checkpoint").text, key_of(http))


def receipt_of(answer: dict[str, object]) -> receipts.Receipt:
    receipt = answer["receipt"]
    assert isinstance(receipt, dict)
    return receipts.parse_proof(bytes.fromhex(receipt["salt"]), receipt["proof"])


def test_an_empty_log_is_signed(http: TestClient) -> None:
    assert checkpoint(http) == receipts.Checkpoint(ORIGIN, 0, merkle.EMPTY_ROOT)
    state = get(http, "/log")
    assert (state["origin"], state["size"]) == (ORIGIN, 0)
    assert base64.b64decode(state["root"]) == merkle.EMPTY_ROOT
    assert http.get("/checkpoint").headers["content-type"] == "text/plain; charset=utf-8"


def test_the_receipt_proves_the_envelope_that_was_sent(post: Poster) -> None:
    raw = results.sealed(results.make_result())
    first = post.raw(raw)
    answer = first.json()
    assert first.headers["location"] == f"/api/v1/results/{answer['id']}"
    receipt = receipt_of(answer)
    found = receipts.verify_receipt(receipt, envelope.read(raw), key_of(post.http))
    assert (receipt.index, found.size) == (1, 2)
    for _ in range(3):
        post.made()
    again = post.raw(raw)
    assert (again.status_code, again.json()) == (200, answer)
    assert get(post.http, f"/results/{answer['id']}/receipt") == answer["receipt"]


def test_the_tree_comes_out_of_the_tiles(post: Poster) -> None:
    sizes = [checkpoint(post.http)]
    lines = [results.sealed(results.make_result()) for _ in range(300)]
    post.http.post("/api/v1/results", content=b"\n".join(lines), headers=NDJSON)
    sizes.append(checkpoint(post.http))
    post.made()
    newest = checkpoint(post.http)

    def fetch(address: str) -> bytes:
        answer = post.http.get(address).raise_for_status()
        assert "immutable" in answer.headers["cache-control"]
        return answer.content

    frontier = merkle.Frontier()
    for address in tiles.entries_addresses(newest.size):
        for entry in tiles.decode_entries(fetch(address)):
            frontier.add(merkle.leaf_hash(entry))
    assert (frontier.size, frontier.root) == (302, newest.root)
    for old in sizes:
        ranges = merkle.consistency_ranges(old.size, newest.size)
        nodes = tiles.fetch_nodes(fetch, newest.size, merkle.nodes_of(ranges))
        receipts.verify_growth(old, newest, [merkle.range_hash(nodes, *r) for r in ranges])


def test_there_are_no_other_tiles(post: Poster) -> None:
    post.made()
    for tile in (
        *("0/001", "0/000", "0/000.p/9", "1/000.p/1", "entries/000.p/99", "0/xxx", "63/000.p/1"),
        "0/x999/x999/x999/x999/x999/x999/999",
    ):
        answer = post.http.get(f"/tile/{tile}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), tile


def test_many_results_share_one_checkpoint(post: Poster, store: Store) -> None:
    good = [results.make_result() for _ in range(3)]
    first, second, third = map(results.sealed, good)
    changed = results.sealed(good[1].model_copy(update={"preset": "quick"}))
    foreign = results.sealed(good[2], results.private_key(9))
    lines = [first, b"{", second, first, changed, foreign, third]
    answer = post.http.post("/api/v1/results", content=b"\n".join(lines) + b"\n", headers=NDJSON)
    assert answer.status_code == 207
    said = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["status"] for line in said] == [201, 400, 201, 200, 409, 403, 201]
    assert said[3]["result"] == said[0]["result"]
    assert said[1]["problem"]["code"] == "malformed_json"
    with store.reading() as session:
        sizes = session.exec(select(LogCheckpoint.size).order_by(LogCheckpoint.size)).all()
    assert sizes == [0, 1, 4]
    for place in (0, 2, 6):
        receipt = receipt_of(said[place]["result"])
        receipts.verify_receipt(receipt, envelope.read(lines[place]), key_of(post.http))


def test_a_line_has_a_limit_and_a_number(post: Poster) -> None:
    """One that is too long is named, with the limit and what to do, and spoils no other."""
    good = results.sealed(results.make_result())
    edge = good[:-1] + b" " * (strict_json.MAX_BYTES - len(good)) + good[-1:]
    body = b"\n".join([b"", edge, b"  ", edge + b" ", good])
    answer = post.http.post("/api/v1/results", content=body, headers=NDJSON)
    said = [json.loads(line) for line in answer.text.splitlines()]
    assert [(one["line"], one["status"]) for one in said] == [(2, 201), (4, 400), (5, 200)]
    problem = said[1]["problem"]
    assert problem["detail"] == "document is 2097153 bytes, the limit is 2097152"
    assert problem["hint"] == "send at most 2097152 bytes in one document or line"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ((b'"' + b"a" * 1024 * 1024 + b'"\n') * 9, "the limit is 8388608"),
        (b"1\n" * 513, "the body has 513 lines, the limit is 512"),
    ],
)
def test_a_batch_has_a_limit_of_bytes_and_lines(post: Poster, body: bytes, words: str) -> None:
    answer = post.http.post("/api/v1/results", content=body, headers=NDJSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert words in answer.json()["detail"]


def test_a_failed_transaction_leaves_no_leaf(
    post: Poster, store: Store, clock: Callable[[], datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("pulled the plug")

    monkeypatch.setattr(writer, "_sign", fail)
    with pytest.raises(RuntimeError):
        post.made()
    monkeypatch.undo()
    assert checkpoint(post.http).size == 1
    assert post.http.get("/api/v1/results").json()["results"] == []
    post.made()
    assert checkpoint(post.http).size == 2


@pytest.mark.sqlite
def test_the_audit_names_the_entry_before_which_the_clock_was_set_back(
    app: FastAPI, post: Poster, store: Store
) -> None:
    post(results.make_result())
    app.state.clock = lambda: datetime(2026, 11, 20, tzinfo=UTC)
    for _ in range(2):
        post(results.make_result())
    report = audited(store)
    assert (report.set_back, report.faults) == ((2,), ())


def test_a_log_of_other_keys_is_not_continued(store: Store) -> None:
    with store.writing() as session:
        writer.begin(session, AUTHORITY)
    for change in ({"log": results.private_key(9)}, {"origin": "elsewhere"}):
        other = replace(AUTHORITY, **change)  # type: ignore[arg-type]
        with store.writing() as session, pytest.raises(KeysProblem, match="BENCH_SERVER_ORIGIN"):
            writer.begin(session, other)


def test_servers_that_start_together_have_the_same_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one server makes a key, another reads the folder."""
    generate, meanwhile = Ed25519PrivateKey.generate, []

    def another_server_first() -> Ed25519PrivateKey:
        monkeypatch.setattr(Ed25519PrivateKey, "generate", staticmethod(generate))
        meanwhile.append(load_authority(ORIGIN, tmp_path / "keys"))
        return generate()

    monkeypatch.setattr(Ed25519PrivateKey, "generate", staticmethod(another_server_first))
    assert str(load_authority(ORIGIN, tmp_path / "keys").log_key) == str(meanwhile[0].log_key)
    assert len([*(tmp_path / "keys").iterdir()]) == 3


@pytest.mark.parametrize("name", ["challenge", "operator"])
def test_a_lost_key_is_not_replaced_by_another(tmp_path: Path, name: str) -> None:
    """Past challenges and acts would verify no more, and nobody would notice until an audit."""
    load_authority(ORIGIN, tmp_path / "keys")
    lost = tmp_path / "keys" / f"{name}.pem"
    lost.unlink()
    with pytest.raises(KeysProblem, match=f"{name}.pem is missing; restore it"):
        load_authority(ORIGIN, tmp_path / "keys")
    assert not lost.exists()


def test_keys_are_made_once_and_kept_private(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    made, again = (load_authority(ORIGIN, folder) for _ in range(2))
    assert str(made.log_key) == str(again.log_key)
    assert made.identity.operator_key_id == again.identity.operator_key_id
    public = (key.public_key() for key in (made.log, made.challenge, made.operator))
    assert len({key.public_bytes_raw() for key in public}) == 3
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    for path, others, own in ((folder / "log.pem", 0o640, 0o600), (folder, 0o755, 0o700)):
        path.chmod(others)
        with pytest.raises(KeysProblem, match="chmod go="):
            load_authority(ORIGIN, folder)
        path.chmod(own)
    (folder / "log.pem").write_text("nonsense")
    with pytest.raises(KeysProblem, match="not a PEM private key"):
        load_authority(ORIGIN, folder)


def test_the_page_of_the_log_goes_back_to_its_first_entry(post: Poster) -> None:
    for _ in range(30):
        post.made()
    size = post.http.get("/api/v1/log").json()["size"]
    shown: list[int] = []
    path: str | None = "/log"
    while path:
        page = post.http.get(path).text
        shown += map(int, re.findall(r'<th scope="row" class="number">(\d+)<', page))
        older = re.search(r'href="(/log[?]before=\d+)#entries" rel="next"', page)
        path = older[1] if older else None
    assert shown == list(range(size))[::-1]
    assert 'href="/log#entries" rel="prev"' in page
    assert post.http.get("/log?before=0").status_code == 422
