"""``keys`` and ``results`` on the command line: rotation on every server, replacing a dead key."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.outboxes import put
from typer.testing import CliRunner

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.cli.main import app
from bench_agent.remote.outbox import Outbox

SENT = {
    "id": "0f1e2d3c4b5a6978",
    "received_at": "2026-11-25T23:58:00.000000Z",
    "moderation": None,
    "unranked_reason": None,
    "workload": "fashion-mlp",
    "framework": "torch",
    "device": "cpu",
    "recipe": "tuned",
    "batch_size": 1024,
    "precision": "float32",
    "data": "generated",
    "samples_per_second": 26200.4,
    "trust_level": 3,
}


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
    assert len(list(home.key.parent.glob("*.pem"))) == 2


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
    assert (answer.exit_code, answer.stderr.count("\n")) == (2, 1)
    assert "Pass --yes to agree, or answer at a terminal." in answer.stderr
    assert load_or_create_key(home).public_key() == key


def test_where_nothing_waits_no_server_is_asked(home: Home) -> None:
    done = CliRunner().invoke(app, ["submit", "--server", "http://127.0.0.1:9"])
    assert (done.exit_code, done.stdout) == (
        0,
        "nothing to send: the outbox has no pending result\n",
    )


class Server:
    server = "http://one.test"

    def __init__(self, *rows: dict[str, Any]) -> None:
        self._rows = list(rows)

    def act(self, kind: str) -> dict[str, Any]:
        return {"results": self._rows}

    def close(self) -> None: ...


def test_the_list_of_ones_results_has_set_up_speed_and_the_day_of_sending(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = {"precision": "mixed_float16", "data": "real", "batch_size": 128}
    failed = {"samples_per_second": None, "trust_level": None, "unranked_reason": "it failed"}
    rows = [SENT, SENT | half | failed, SENT | {"moderation": "hidden"}]
    monkeypatch.setattr("bench_agent.cli.results.open_client", lambda *about: Server(*rows))
    listed = CliRunner().invoke(app, ["results", "list"])
    assert listed.exit_code == 0, listed.output
    heads, _, first, second, third = listed.stdout.splitlines()
    assert re.split("  +", heads) == [
        *("id", "sent (UTC)", "workload", "set-up", "samples/s", "status")
    ]
    words = ["torch cpu tuned, batch 1,024", "26,200", "level 3"]
    assert re.split("  +", first)[1:] == ["2026-11-25", "fashion-mlp", *words]
    words = ["torch cpu tuned, mixed_float16, real data", "it failed"]
    assert re.split("  +", second)[3:] == words
    assert re.split("  +", third)[-1] == "hidden"
    monkeypatch.setattr("bench_agent.cli.results.open_client", lambda *about: Server())
    assert "no result" in CliRunner().invoke(app, ["results", "list"]).stdout
