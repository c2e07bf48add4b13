"""Time-stamps and cosignatures of the daily checkpoint, from others that behave badly too."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.countersigners import AT, Authority, Reply, Witness, serving

from bench_protocol.signing import note
from bench_protocol.signing.receipts import Checkpoint
from bench_server.answers.log_entries import fetch_from
from bench_server.audit.countersigned import Trusted
from bench_server.audit.verify import audit
from bench_server.cli import countersign
from bench_server.db.store import Store
from bench_server.log import cosigners, countersigning, outgoing
from bench_server.log.cosigners import Cosigner
from bench_server.log.countersigning import NoCountersignature, Signer
from bench_server.log.stamps import StampAuthority
from bench_server.settings import Settings

rfc3161 = pytest.importorskip("rfc3161_client", reason="rfc3161-client is not installed")
DAY = timedelta(days=1)
ON_ONE_DATABASE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
OTHER = Witness(AUTHORITY.log_key, "other.example")


@pytest.fixture
def witness() -> Witness:
    return Witness(AUTHORITY.log_key)


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def cosigner(witness: Witness) -> Iterator[Cosigner]:
    with serving(witness.answer) as url:
        yield Cosigner(witness.key, url)


@pytest.fixture
def stamper(authority: Authority) -> Iterator[StampAuthority]:
    with serving(authority.answer) as url:
        yield StampAuthority(f"{url}/tsr", (authority.root,))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers may take half a second."""
    monkeypatch.setattr(outgoing, "CONNECT_SECONDS", 0.5)


def faults(store: Store, trusted: Trusted) -> list[str]:
    with store.reading() as session:
        return [one.detail for one in audit(fetch_from(session, AUTHORITY, "x"), trusted).faults]


def test_a_growing_log_is_cosigned_each_day(
    http: TestClient, post: Poster, store: Store, witness: Witness, cosigner: Cosigner
) -> None:
    first = countersigning.countersign(store, cosigner, AT)
    assert witness.asked[0].startswith(b"old 0\n\n")
    post(results.make_result())
    post(results.make_result())
    second = countersigning.countersign(store, cosigner, AT + DAY)
    assert second > first
    assert witness.asked[1].startswith(b"old %d\n" % first)
    shown = http.get("/checkpoint").text
    assert note.open_note(shown, AUTHORITY.log_key)
    assert shown.endswith(witness.line(note.split(shown)[0]))
    answer = http.get("/api/v1/log/countersigned").json()["checkpoints"]
    assert [(one["day"], one["size"], one["witnesses"]) for one in answer] == [
        ("2026-11-22", second, [witness.name]),
        ("2026-11-21", first, [witness.name]),
    ]
    assert witness.name in http.get("/log").text
    post(results.make_result())
    assert witness.name not in http.get("/checkpoint").text
    assert faults(store, Trusted((witness.key,))) == []


def test_a_witness_that_has_signed_before_says_what(
    post: Poster, store: Store, witness: Witness, cosigner: Cosigner
) -> None:
    """This database was restored from an older backup, or the witness has a memory of its own."""
    size = countersigning.countersign(store, cosigner, AT)
    with store.writing() as session:
        session.connection().exec_driver_sql("DELETE FROM countersignature")
    post(results.make_result())
    assert countersigning.countersign(store, cosigner, AT + DAY) == size + 1
    assert [body.split(b"\n")[0] for body in witness.asked[1:]] == [b"old 0", b"old %d" % size]


def test_a_stamp_of_the_day_is_verified_and_shown(
    http: TestClient, post: Poster, store: Store, authority: Authority, stamper: StampAuthority
) -> None:
    assert "1 entry, signed by this server alone" in http.get("/log").text
    countersigning.countersign(store, stamper, AT)
    (shown,) = http.get("/api/v1/log/countersigned").json()["checkpoints"]
    (stamp,) = shown["stamps"]
    assert (stamp["authority"], stamp["stamped_at"]) == (stamper.url, "2026-11-21T05:00:00Z")
    assert stamper.url in http.get("/log").text
    post(results.make_result())
    size = shown["size"]
    assert f"{size + 1} entries; 1 other has signed the first {size}<" in http.get("/log").text
    assert faults(store, Trusted(certificates=(authority.root,))) == []
    (fault,) = set(faults(store, Trusted(certificates=(Authority().root,)))) - {
        "no checkpoint has a time-stamp under these certificates"
    }
    assert "its stamp proves nothing" in fault


def test_who_has_signed_today_is_not_asked_again(
    post: Poster, store: Store, stamper: StampAuthority, cosigner: Cosigner, authority: Authority
) -> None:
    signers: tuple[Signer, ...] = (stamper, cosigner)
    assert len(countersign.once(store, signers, AT)) == 2
    assert countersign.once(store, signers, AT + timedelta(hours=18)) == ()
    assert len(countersign.once(store, signers, AT + DAY)) == 2
    assert authority.asked == 2


def test_an_empty_log_is_not_countersigned(
    http: TestClient, store: Store, stamper: StampAuthority
) -> None:
    assert countersigning.due(store, (stamper,), AT) == ()


Spoil = Callable[[Reply], Reply | None]
BAD: dict[str, tuple[Spoil, str]] = {
    "nothing at all": (lambda _: None, "does not answer"),
    "500": (lambda _: Reply(500, b"<html>oh</html>"), "answered HTTP 500"),
    "404": (lambda _: Reply(404, b""), "answered HTTP 404"),
    "empty": (lambda _: Reply(200, b""), ""),
    "a page": (lambda _: Reply(200, b"<html>\xff</html>"), ""),
    "too much": (lambda _: Reply(200, bytes(1_000_000)), "more than 131,072 bytes"),
    "cut": (lambda reply: Reply(200, reply.body[:-20]), ""),
    "a flipped bit": (lambda r: Reply(200, r.body[:-9] + b"A" + r.body[-8:]), ""),
}


@ON_ONE_DATABASE
@pytest.mark.parametrize("how", BAD)
@pytest.mark.parametrize("kind", ["stamp", "cosignature"])
def test_a_bad_answer_is_one_line_and_stores_nothing(
    how: str, kind: str, post: Poster, store: Store, quick: None,
    witness: Witness, cosigner: Cosigner, authority: Authority, stamper: StampAuthority,
) -> None:  # fmt: skip
    spoil, says = BAD[how]
    witness.spoil = authority.spoil = spoil
    signer: Signer = stamper if kind == "stamp" else cosigner
    with pytest.raises(NoCountersignature) as refused:
        countersigning.countersign(store, signer, AT)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert countersigning.due(store, (signer,), AT) == (signer,)
    witness.spoil = authority.spoil = lambda reply: reply
    witness.size = 0
    countersigning.countersign(store, signer, AT)
    assert countersigning.due(store, (signer,), AT) == ()


@ON_ONE_DATABASE
@pytest.mark.parametrize("what", ["digest", "nonce", "status", "signature"])
def test_a_stamp_that_proves_nothing_is_refused(
    what: str, post: Poster, store: Store, authority: Authority, stamper: StampAuthority
) -> None:
    authority.changed = frozenset({what})
    with pytest.raises(NoCountersignature, match="its stamp proves nothing"):
        countersigning.countersign(store, stamper, AT)


def test_a_stamp_of_another_root_is_refused(
    post: Poster, store: Store, stamper: StampAuthority
) -> None:
    other = StampAuthority(stamper.url, (Authority().root,))
    with pytest.raises(NoCountersignature, match="its stamp proves nothing"):
        countersigning.countersign(store, other, AT)


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda _: Reply(409, b"900\n"), "has signed size 900"),
        (lambda _: Reply(409, b"none of your business\n"), "has signed size None"),
        (lambda _: Reply(409, b"0\n"), "answered HTTP 409"),
        (lambda _: Reply(200, OTHER.line("a\n1\n").encode()), "of its key"),
    ],
)  # fmt: skip
def test_a_witness_that_contradicts_is_refused(
    spoil: Spoil, says: str, post: Poster, store: Store, witness: Witness, cosigner: Cosigner
) -> None:
    witness.spoil = spoil
    with pytest.raises(NoCountersignature, match=says):
        countersigning.countersign(store, cosigner, AT)
    assert len(witness.asked) <= 2


def test_nobody_listens(post: Poster, store: Store, witness: Witness) -> None:
    with serving(witness.answer) as url:
        pass
    with pytest.raises(NoCountersignature, match="does not answer"):
        countersigning.countersign(store, Cosigner(witness.key, url), AT)


def test_the_audit_finds_a_checkpoint_that_the_log_did_not_sign(
    post: Poster, store: Store, witness: Witness, cosigner: Cosigner
) -> None:
    countersigning.countersign(store, cosigner, AT)
    post(results.make_result())
    with store.writing() as session:
        session.connection().exec_driver_sql("UPDATE countersignature SET size = size + 1")
    (fault, missing) = faults(store, Trusted((witness.key,)))
    assert "does not verify" in fault
    assert missing == f"no checkpoint is cosigned by {witness.name}"
    assert faults(store, Trusted()) == []


def test_the_audit_finds_that_others_saw_another_history(
    post: Poster, store: Store, witness: Witness, cosigner: Cosigner
) -> None:
    """The log signed two roots of one size: one for its readers, one for the witness."""
    size = countersigning.countersign(store, cosigner, AT)
    fork = Checkpoint(AUTHORITY.origin, size, bytes(32)).signed(AUTHORITY.log)
    cosigned = fork + witness.line(note.split(fork)[0])
    with store.reading() as session:
        honest = fetch_from(session, AUTHORITY, "x")

        def fetch(path: str) -> bytes:
            if "countersigned" not in path:
                return honest(path)
            one = {"size": size, "note": fork, "checkpoint": cosigned, "stamps": []}
            return json.dumps({"checkpoints": [one]}).encode()

        found = {fault.detail for fault in audit(fetch, Trusted((witness.key,))).faults}
    assert "others signed another checkpoint than the log shows" in found


def test_an_answer_without_end_is_given_up() -> None:
    with (
        serving(lambda _path, _body: Reply(200, b".", drips=True)) as url,
        pytest.raises(outgoing.NoAnswer, match="the answer takes too long"),
    ):
        outgoing.post(url, b"", "text/plain", seconds=0.3)


def test_the_thread_goes_on_after_failures_and_logs_a_line(
    post: Poster, store: Store, witness: Witness, cosigner: Cosigner,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    done = threading.Event()

    def answer(reply: Reply) -> Reply:
        if len(witness.asked) < 3:
            return Reply(503, b"later")
        done.set()
        return reply

    witness.spoil = answer
    monkeypatch.setattr(countersign, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(countersign, "LOOK_SECONDS", 0.01)
    settings = Settings(witnesses=f"{cosigner.key} {cosigner.url}")
    with (
        caplog.at_level(logging.WARNING),
        countersign.countersigning_daily(store, settings),
    ):
        assert done.wait(30)
    said = [record.getMessage() for record in caplog.records if "countersigned" in record.message]
    assert len(said) == 2
    assert all("answered HTTP 503" in one and "\n" not in one for one in said)


def test_nothing_is_asked_without_settings() -> None:
    assert countersign.signers_of(Settings()) == ()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"witnesses": "a"}, "a verifier key and an address"),
        ({"witnesses": "a b"}, "b is no address"),
        ({"witnesses": "a http://w.example"}, "witness"),
        ({"timestamp_url": "http://t.example"}, "needs BENCH_SERVER_TIMESTAMP_CERTIFICATES"),
        (
            {"timestamp_url": "http://t.example", "timestamp_certificates": Path("/none.pem")},
            "/none.pem cannot be read: No such file",
        ),
    ],
)
def test_invalid_settings_are_one_line(
    settings: dict[str, Any], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        countersign.signers_of(Settings(**settings))
    assert says in capsys.readouterr().err


def test_settings_name_witnesses_and_an_authority(
    tmp_path: Path, witness: Witness, authority: Authority
) -> None:
    pem = tmp_path / "roots.pem"
    pem.write_bytes(authority.pem)
    settings = Settings(
        witnesses=f"{witness.key} https://w.example/",
        timestamp_url="https://t.example/tsr",
        timestamp_certificates=pem,
    )
    cosigner, stamper = countersign.signers_of(settings)
    assert cosigner == Cosigner(witness.key, "https://w.example/")
    assert cosigners.parse(f"{witness.key}\nhttps://w.example/") == (cosigner,)
    assert stamper.name == "https://t.example/tsr"


def test_a_dump_holds_what_others_signed(
    post: Poster, store: Store, witness: Witness, cosigner: Cosigner
) -> None:
    countersigning.countersign(store, cosigner, AT)
    with store.reading() as session:
        fetch = fetch_from(session, AUTHORITY, "x")
        shown = json.loads(fetch("/api/v1/log/countersigned?limit=366"))
    assert shown["checkpoints"][0]["witnesses"] == [witness.name]
