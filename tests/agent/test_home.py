"""Key, salt and outbox on a real disk."""

import shlex
import stat
import sys
from pathlib import Path

import pytest
from tests.fakes.outboxes import put
from tests.fakes.results import make_result, private_key

from bench_agent.base.errors import HomeProblem
from bench_agent.base.home import Home, find_home
from bench_agent.base.keys import load_or_create_key, machine_hash
from bench_agent.remote.outbox import Outbox
from bench_protocol.signing.keys import key_id


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_how_to_call_the_agent_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert find_home({}).command("report") == "bench-agent report"
    assert Home(Path("/a b")).command("report") == "BENCH_HOME='/a b' bench-agent report"
    monkeypatch.setenv("PATH", str(tmp_path))
    whole = shlex.quote(str(Path(sys.executable).with_name("bench-agent")))
    assert find_home({}).command("report") == f"{whole} report"


def test_the_key_is_made_once_and_only_its_owner_may_read_it(home: Home) -> None:
    first = load_or_create_key(home)
    assert key_id(first.public_key()) == key_id(load_or_create_key(home).public_key())
    assert stat.S_IMODE(home.key.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.key.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_key_others_may_read_is_refused_with_its_hint(home: Home, mode: int) -> None:
    load_or_create_key(home)
    home.key.chmod(mode)
    with pytest.raises(HomeProblem, match="chmod 600"):
        load_or_create_key(home)
    home.key.chmod(0o600)
    home.key.parent.chmod(0o750)
    with pytest.raises(HomeProblem, match="chmod 700"):
        load_or_create_key(home)


@pytest.mark.parametrize("content", [b"", b"not a key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_a_broken_key_file_is_named(home: Home, content: bytes) -> None:
    load_or_create_key(home)
    home.key.write_bytes(content)
    with pytest.raises(HomeProblem, match="machine.pem"):
        load_or_create_key(home)


def test_the_machine_hash_needs_the_salt(tmp_path: Path) -> None:
    first_home, second_home = Home(tmp_path / "one"), Home(tmp_path / "other")
    assert machine_hash(first_home, b"serial") == machine_hash(first_home, b"serial")
    assert machine_hash(first_home, b"serial") != machine_hash(first_home, b"another")
    assert machine_hash(first_home, b"serial") != machine_hash(second_home, b"serial")


def test_a_half_written_file_is_not_taken_for_an_envelope(home: Home) -> None:
    outbox = Outbox(home.outbox)
    put(outbox, make_result(), private_key())
    (home.outbox / "pending" / ".abc.json.123.partial").write_bytes(b"{")
    assert len(list(outbox.pending())) == 1


def test_a_folder_that_cannot_be_made_is_a_problem_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(HomeProblem, match="BENCH_HOME"):
        load_or_create_key(Home(tmp_path / "file" / "home"))
