"""The outbox beside other processes, and the questions before it is sent."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from tests.fakes.outboxes import outbox_with, put
from tests.fakes.results import make_failure, make_result, private_key

from bench_agent.base.home import Home
from bench_agent.cli import run, setup, submit
from bench_agent.cli.submit import _say_what_ranks
from bench_agent.output.documents import print_status
from bench_agent.remote import batch
from bench_agent.remote.outbox import Outbox
from bench_protocol.payload.result import Challenge, Warn

KEY = private_key()


def test_an_envelope_that_goes_before_it_is_read_is_left_out(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 3)
    entries = list(outbox.pending())
    outbox.move(entries[1], "sent", {})
    (cut,) = batch.batches(entries)
    assert [entry for entry, _ in cut] == [entries[0], entries[2]]


def test_an_envelope_that_was_moved_is_still_read(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 1)
    entry = next(outbox.pending())
    raw = entry.raw
    outbox.move(entry, "sent", {"id": "r1"})
    assert entry.raw == raw
    assert [found.raw for found in outbox.last_run()] == [raw]


def test_a_file_that_goes_while_the_outbox_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = outbox_with(tmp_path, 3)
    gone = sorted((outbox.root / "pending").glob("*.json"))[0]
    real = Path.stat

    def stat(path: Path, **options: Any) -> Any:
        if path == gone:
            raise FileNotFoundError(path)
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    assert len(list(outbox.pending())) == 2


@pytest.mark.parametrize(
    ("answers", "views", "agrees"),
    [("y", 0, True), ("vy", 1, True), ("vvn", 2, False), ("x", 0, False), ("\n", 0, False)],
)
def test_a_question_shows_what_it_is_about_until_it_is_answered(
    monkeypatch: pytest.MonkeyPatch, answers: str, views: int, agrees: bool
) -> None:
    typed, shown = iter(answers), []
    monkeypatch.setattr(typer, "get_text_stream", lambda name: Terminal())
    monkeypatch.setattr(typer, "prompt", lambda *words, **options: next(typed))
    with nullcontext() if agrees else pytest.raises(typer.Abort):
        setup.ask("Agree, and send?", False, lambda: shown.append(1))
    assert len(shown) == views


def test_what_can_be_ranked_is_said_before_anything_is_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server: Any = SimpleNamespace(
        checkpoints=SimpleNamespace(meet=lambda: SimpleNamespace(origin="here"))
    )
    outbox = Outbox(tmp_path)

    def said() -> tuple[bool, list[str]]:
        return _say_what_ranks(server, outbox), capsys.readouterr().err.splitlines()

    def challenge(origin: str) -> Challenge:
        return Challenge(id="a" * 32, nonce="b" * 64, server_origin=origin)

    put(outbox, make_result(key=KEY, challenge=challenge("here")), KEY)
    assert said() == (False, ["1 of 1 result can be ranked, if the server's checks pass."])
    assert max(map(len, submit.CONSENT.splitlines())) <= 80
    load = Warn(code="other_load", figures={"busy_cores": 6.0, "cores": 8.0})
    put(outbox, make_result(key=KEY, warnings=(load,)), KEY)
    put(outbox, make_result(key=KEY), KEY)
    put(outbox, make_result(key=KEY, challenge=challenge("there")), KEY)
    put(outbox, make_failure(key=KEY, challenge=challenge("here")), KEY)
    doubtful, lines = said()
    assert doubtful
    assert lines[0] == "1 of 5 results can be ranked, if the server's checks pass."
    assert sorted(lines[1:]) == [
        "Never ranked: 1 measured for another server, there.",
        "Never ranked: 1 without a measurement, because it failed.",
        "Never ranked: 2 measured without a server; to measure again: bench-agent run --server "
        "URL.",
        "Not worth sharing: 1 that other work or heat slowed.",
    ]


@pytest.mark.parametrize(
    ("consented", "doubtful", "questions"),
    [(False, True, 1), (False, False, 0), (True, True, 0)],
)
def test_unranked_results_are_asked_about_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    consented: bool,
    doubtful: bool,
    questions: int,
) -> None:
    put(Outbox(Home(tmp_path).outbox), make_result(key=KEY), KEY)
    asked: list[str] = []
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    monkeypatch.setattr(typer, "get_text_stream", lambda name: Terminal())
    monkeypatch.setattr(submit, "open_client", lambda server, home: Agreed())
    monkeypatch.setattr(submit, "_say_what_ranks", lambda client, outbox: doubtful)
    monkeypatch.setattr(submit, "ask_consent", lambda client, outbox, yes: consented)
    monkeypatch.setattr(submit, "post", lambda client, outbox: iter(()))
    monkeypatch.setattr(submit, "ask", lambda question, yes: asked.append(question))
    submit.submit("http://server.test")
    assert asked == ["Send them anyway?"] * questions


def test_the_status_says_what_can_never_be_ranked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outbox_with(tmp_path, 2)
    print_status(Home(tmp_path), Outbox(tmp_path / "outbox"))
    assert "To send them (2 can never be ranked: measured" in capsys.readouterr().out


class Terminal:
    def isatty(self) -> bool:
        return True


def test_a_run_names_the_older_results_that_it_sends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "open_client", lambda server, home: Agreed())
    monkeypatch.setattr(run, "ask_consent", lambda client, outbox, yes: None)
    words = "The outbox has 2 pending results of earlier runs: this run sends them too. "
    words += "Those measured without a server are shown there, but not ranked.\n"

    def said(resume: bool) -> str:
        assert run.consent_before("http://server.test", Home(tmp_path), yes=True, resume=resume)
        return capsys.readouterr().err

    assert said(resume=False) == ""
    own, _ = (entry.run_id for entry in outbox_with(tmp_path, 2).pending())
    assert said(resume=False) == words
    monkeypatch.setattr(run, "unfinished", lambda home: SimpleNamespace(run_id="another"))
    assert said(resume=True) == words
    monkeypatch.setattr(run, "unfinished", lambda home: SimpleNamespace(run_id=own))
    assert said(resume=True) == words.replace("2 pending results", "1 pending result")


class Agreed:
    server, checkpoints = "http://server.test", None

    def close(self) -> None: ...
