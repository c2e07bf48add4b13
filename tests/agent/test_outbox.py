"""The outbox beside other processes, and the questions before it is sent."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from tests.fakes.outboxes import outbox_with, put
from tests.fakes.results import make_result, private_key

from bench_agent.base.home import Home
from bench_agent.cli import run, setup
from bench_agent.cli.submit import _ask_about_disturbed
from bench_agent.remote import batch
from bench_protocol.payload.result import Warn

KEY = private_key()


def test_an_envelope_that_goes_before_it_is_read_is_left_out(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 3)
    entries = list(outbox.pending())
    outbox.move(entries[1], "sent", {})
    (cut,) = batch.batches(entries)
    assert [pending.entry for pending in cut] == [entries[0], entries[2]]


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


def test_disturbed_results_are_asked_about_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(typer, "get_text_stream", lambda name: Terminal())
    monkeypatch.setattr(typer, "confirm", lambda words, **options: asked.append(words))
    outbox = outbox_with(tmp_path, 1)
    _ask_about_disturbed(outbox, False)
    assert asked == []
    load = Warn(code="other_load", figures={"busy_cores": 6.0, "cores": 8.0})
    put(outbox, make_result(key=KEY, warnings=(load,)), KEY)
    _ask_about_disturbed(outbox, True)
    assert asked == []
    _ask_about_disturbed(outbox, False)
    assert asked[0].startswith("Not worth sharing: 1 of 2 results, ")


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
    def close(self) -> None: ...
