"""``keys`` and ``results`` on the command line: rotation on every server, replacing a dead key."""

import json
from pathlib import Path

import pytest
from tests.fakes import results
from tests.fakes.outboxes import put
from typer.testing import CliRunner

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.cli.main import app
from bench_agent.remote.outbox import Outbox


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    home = Home(tmp_path / "home")
    home.root.mkdir(mode=0o700)
    return home


def test_rotating_asks_for_every_server_that_was_met(home: Home) -> None:
    key = load_or_create_key(home).public_key()
    home.servers.mkdir()
    for number in (1, 2):
        server_file = {"server": f"http://one{number}.test", "known": {}}
        (home.servers / f"{number}.json").write_text(json.dumps(server_file))
    answer = CliRunner().invoke(app, ["keys", "rotate", "--server", "http://one1.test/"])
    assert answer.exit_code == 2
    assert "--server http://one2.test" in answer.output
    assert load_or_create_key(home).public_key() == key


def test_a_dead_key_is_put_away_with_what_waits(home: Home) -> None:
    old = load_or_create_key(home)
    outbox = Outbox(home.outbox)
    put(outbox, results.make_result(key=old), old)
    done = CliRunner().invoke(app, ["keys", "renew", "--yes"])
    assert done.exit_code == 0, done.output
    assert load_or_create_key(home).public_key() != old.public_key()
    assert not list(outbox.pending())
    (refused,) = outbox.refused()
    assert "replaced" in (refused.answer or {})["detail"]
    key_files = [path.name for path in home.key.parent.glob("*.pem")]
    assert len(key_files) == 2


def test_without_a_key_there_is_nothing_to_put_away(home: Home) -> None:
    answer = CliRunner().invoke(app, ["keys", "renew", "--yes"])
    assert answer.exit_code == 2
    assert "the first run makes one" in answer.output


@pytest.mark.parametrize(
    "command", [["results", "withdraw", "0" * 16], ["keys", "revoke"], ["keys", "renew"]]
)
def test_what_cannot_be_undone_is_not_done_unasked(home: Home, command: list[str]) -> None:
    key = load_or_create_key(home).public_key()
    answer = CliRunner().invoke(app, command)
    assert answer.exit_code == 2
    assert answer.stderr.count("\n") == 1
    assert "Pass --yes to agree, or answer at a terminal." in answer.stderr
    assert load_or_create_key(home).public_key() == key


def test_where_nothing_waits_no_server_is_asked(home: Home) -> None:
    done = CliRunner().invoke(app, ["submit", "--server", "http://127.0.0.1:9"])
    assert (done.exit_code, done.stdout) == (
        0,
        "nothing to send: the outbox has no pending result\n",
    )
