"""Cosignatures of the daily checkpoint, from witnesses that behave badly too."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
import typer
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster, get
from tests.fakes.witness import AT, Reply, Witness, serving

from bench_protocol.signing import note
from bench_protocol.signing.cosignatures import WitnessKey
from bench_protocol.signing.receipts import Checkpoint
from bench_server.answers.log_entries import fetch_from
from bench_server.audit.verify import audit
from bench_server.cli import cosign
from bench_server.db.store import Store
from bench_server.log import cosigners, cosigning
from bench_server.log.cosigners import Cosigner, NoCosignature
from bench_server.settings import Settings

DAY = timedelta(days=1)
OTHER = Witness(AUTHORITY.log_key, "other.example")


@pytest.fixture
def witness() -> Witness:
    return Witness(AUTHORITY.log_key)


@dataclass
class Site:
    post: Poster
    store: Store
    cosigner: Cosigner

    def cosign(self, at: datetime = AT) -> int:
        return cosigning.cosign(self.store, self.cosigner, at)

    def changed(self, statement: str) -> None:
        with self.store.writing() as session:
            session.connection().exec_driver_sql(statement)

    def faults(self, *witnesses: WitnessKey) -> list[str]:
        with self.store.reading() as session:
            found = audit(fetch_from(session, AUTHORITY, "x"), witnesses)
        return [one.detail for one in found.faults]


@pytest.fixture
def site(post: Poster, store: Store, witness: Witness) -> Iterator[Site]:
    with serving(witness.answer) as url:
        yield Site(post, store, Cosigner(witness.key, url))


def test_a_growing_log_is_cosigned_each_day(site: Site, witness: Witness) -> None:
    http, post = site.post.http, site.post
    assert "1 entry, signed by this server alone" in http.get("/log").text
    first = site.cosign()
    assert witness.asked[0].startswith(b"old 0\n\n")
    post(results.make_result())
    post(results.make_result())
    second = site.cosign(AT + DAY)
    assert second > first
    assert witness.asked[1].startswith(b"old %d\n" % first)
    shown = http.get("/checkpoint").text
    assert note.open_note(shown, AUTHORITY.log_key)
    assert shown.endswith(witness.line(note.split(shown)[0]))
    answer = get(http, "/log/cosigned")["checkpoints"]
    assert [(one["day"], one["size"], one["witnesses"]) for one in answer] == [
        ("2026-11-22", second, [witness.name]),
        ("2026-11-21", first, [witness.name]),
    ]
    assert witness.name in http.get("/log").text
    post(results.make_result())
    assert witness.name not in http.get("/checkpoint").text
    words = f"{second + 1} entries; 1 witness has signed the first {second}<"
    assert words in http.get("/log").text
    assert site.faults(witness.key) == []


def test_a_witness_that_has_signed_before_says_what(site: Site, witness: Witness) -> None:
    """This database was restored from an older backup, or the witness has a memory of its own."""
    size = site.cosign()
    site.changed("DELETE FROM cosignature")
    site.post(results.make_result())
    assert site.cosign(AT + DAY) == size + 1
    assert [body.split(b"\n")[0] for body in witness.asked[1:]] == [b"old 0", b"old %d" % size]


def test_who_has_signed_today_is_not_asked_again(site: Site, witness: Witness) -> None:
    hours = (timedelta(hours=after) for after in (0, 18, 24))
    signed = [cosign.once(site.store, [site.cosigner], AT + after) for after in hours]
    assert [len(one) for one in signed] == [1, 0, 1]
    assert len(witness.asked) == 2


def test_an_empty_log_is_not_cosigned(http: TestClient, store: Store, witness: Witness) -> None:
    assert cosigning.due(store, [Cosigner(witness.key, "")], AT) == ()


Spoil = Callable[[Reply], Reply | None]
BAD: dict[str, tuple[Spoil, str]] = {
    "nothing at all": (lambda _: None, "does not answer"),
    "500": (lambda _: Reply(500, b"<html>oh</html>"), "answered HTTP 500"),
    "empty": (lambda _: Reply(200, b""), "not one or more signature lines"),
    "a page": (lambda _: Reply(200, b"<html>\xff</html>"), "codec can't decode"),
    "too much": (lambda _: Reply(200, bytes(1_000_000)), "more than 131,072 bytes"),
    "cut": (lambda reply: Reply(200, reply.body[:-20]), "a signature line is malformed"),
    "a flipped bit": (lambda r: Reply(200, r.body[:-9] + b"A" + r.body[-8:]), "does not verify"),
    "another size": (lambda _: Reply(409, b"900\n"), "has signed size 900"),
    "no size": (lambda _: Reply(409, b"none of your business\n"), "has signed size None"),
    "the same size": (lambda _: Reply(409, b"0\n"), "answered HTTP 409"),
    "another's line": (lambda _: Reply(200, OTHER.line("a\n1\n").encode()), "of its key"),
}


def test_a_bad_answer_is_one_line_and_stores_nothing(
    site: Site, witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cosigners, "CONNECT_SECONDS", 2.0)
    for day, (how, (spoil, says)) in enumerate(BAD.items()):
        at = AT + day * DAY
        witness.spoil, witness.asked = spoil, []
        with pytest.raises(NoCosignature, match=says) as refused:
            site.cosign(at)
        assert "\n" not in str(refused.value), how
        assert len(witness.asked) <= 2
        assert cosigning.due(site.store, [site.cosigner], at) == (site.cosigner,)
        witness.spoil, witness.size = (lambda reply: reply), 0
        site.cosign(at)
        assert cosigning.due(site.store, [site.cosigner], at) == ()
        site.post(results.make_result())


def test_the_audit_finds_a_checkpoint_that_the_log_did_not_sign(
    site: Site, witness: Witness
) -> None:
    site.cosign()
    site.post(results.make_result())
    site.changed("UPDATE cosignature SET size = size + 1")
    (fault, missing) = site.faults(witness.key)
    assert "does not verify" in fault
    assert missing == f"no checkpoint is cosigned by {witness.name}"
    assert site.faults() == []


def test_the_audit_finds_that_others_saw_another_history(site: Site, witness: Witness) -> None:
    """The log signed two roots of one size: one for its readers, one for the witness."""
    size = site.cosign()
    fork = Checkpoint(AUTHORITY.origin, size, bytes(32)).signed(AUTHORITY.log)
    cosigned = fork + witness.line(note.split(fork)[0])
    shown = json.dumps({"checkpoints": [{"size": size, "checkpoint": cosigned}]}).encode()
    with site.store.reading() as session:
        honest = fetch_from(session, AUTHORITY, "x")
        found = audit(lambda at: shown if "cosigned" in at else honest(at), [witness.key]).faults
    said = "witnesses signed another checkpoint than the log shows"
    assert said in {fault.detail for fault in found}


def test_an_answer_without_end_is_given_up() -> None:
    with (
        serving(lambda _path, _body: Reply(200, b".", drips=True)) as url,
        pytest.raises(OSError, match="the answer takes too long"),
    ):
        cosigners.post(url, b"", seconds=0.3)


def test_the_thread_goes_on_after_failures_and_logs_a_line(
    site: Site, witness: Witness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done = threading.Event()

    def answer(reply: Reply) -> Reply:
        if len(witness.asked) < 3:
            return Reply(503, b"later")
        done.set()
        return reply

    witness.spoil = answer
    monkeypatch.setattr(cosign, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(cosign, "LOOK_SECONDS", 0.01)
    settings = Settings(witnesses=f"{site.cosigner.key} {site.cosigner.url}")
    with caplog.at_level(logging.WARNING), cosign.cosigning_daily(site.store, settings):
        assert done.wait(30)
    said = [record.getMessage() for record in caplog.records if "cosigned" in record.message]
    assert len(said) == 2
    assert all("answered HTTP 503" in one and "\n" not in one for one in said)


def test_invalid_settings_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for witnesses, says in (
        *(("a", "a verifier key and an address"), ("a b", "b is no address")),
        ("a http://w.example", "witness"),
    ):
        with pytest.raises(typer.Exit):
            cosign.cosigners_of(Settings(witnesses=witnesses))
        assert says in capsys.readouterr().err


def test_the_setting_names_witnesses(witness: Witness) -> None:
    cosigner = Cosigner(witness.key, "https://w.example/")
    assert cosign.cosigners_of(Settings()) == ()
    assert cosigners.parse(f"{witness.key}\nhttps://w.example/") == (cosigner,)
