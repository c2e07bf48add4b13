"""The operator's commands on real databases, beside a running server."""

import json
import re
import tarfile
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from click.testing import Result as Ran
from fastapi import FastAPI
from tests.fakes import results, said
from tests.fakes.client import JSON, Poster
from tests.fakes.projected import project
from typer.testing import CliRunner

from bench_server.cli.main import main as cli
from bench_server.db.store import Store
from bench_server.log import breaks
from bench_server.log.server_keys import Authority, load_authority
from bench_server.settings import Settings

KEY, OTHER = (results.key_id(results.private_key(seed)) for seed in (1, 2))
Command = Callable[..., Ran]


@pytest.fixture
def keys_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_SERVER_KEYS_DIR", str(tmp_path / "server-keys"))
    return tmp_path / "server-keys"


@pytest.fixture
def command(database_url: str, store: Store, keys_dir: Path) -> Command:
    def run(*arguments: str) -> Ran:
        done = CliRunner().invoke(cli, [*arguments, "--database-url", database_url])
        project(store)
        return done

    return run


@pytest.fixture
def authority(keys_dir: Path) -> Authority:
    """The keys that the commands read, as ``bench-server serve`` has them."""
    return load_authority("trainmark.localhost", keys_dir)


def test_the_servers_keys_are_archived_for_their_operator_alone(
    command: Command, keys_dir: Path, authority: Authority, tmp_path: Path
) -> None:
    file = tmp_path / "keys.tar"
    for _ in range(2):
        done = command("keys", "archive", str(file))
        assert done.exit_code == 0, done.output
    assert file.stat().st_mode & 0o777 == 0o600
    restored = tmp_path / "restored"
    restored.mkdir(mode=0o700)
    with tarfile.open(file) as tar:
        tar.extractall(restored, filter="data")
    assert {path.name for path in restored.iterdir()} == {path.name for path in keys_dir.iterdir()}
    load_authority(authority.origin, restored)


@pytest.mark.parametrize(
    ("file", "words"), [("keys.tar", "has no keys"), ("missing/keys.tar", "cannot write")]
)
def test_an_archive_that_cannot_be_made_is_one_sentence(
    command: Command, keys_dir: Path, tmp_path: Path, file: str, words: str
) -> None:
    if "missing" in file:
        load_authority("trainmark.localhost", keys_dir)
    done = command("keys", "archive", str(tmp_path / file))
    assert done.exit_code == 2
    assert words in done.stderr
    assert not list(tmp_path.glob("*.tar*"))


def entry(done: Ran) -> int:
    assert done.exit_code == 0, done.output
    match = re.fullmatch(r"logged as entry (\d+)\n", done.output)
    assert match, done.output
    return int(match.group(1))


def key(post: Poster, key_id: str = KEY) -> dict[str, object]:
    document: dict[str, object] = post.http.get(f"/api/v1/keys/{key_id}").json()
    return document


@pytest.mark.parametrize("group", ["keys", "owners"])
def test_an_empty_list_says_so_on_standard_error(command: Command, group: str) -> None:
    listed = command(group, "list")
    assert listed.stdout == ""
    assert listed.stderr.startswith(f"no {group}; ")


def test_keys(post: Poster, command: Command) -> None:
    post.enroll(results.private_key(2))
    listed = command("keys", "list").output.splitlines()
    assert listed[0] == f"{KEY}  active    key-{KEY[:12]}"
    assert listed[1] == f"{OTHER}  active    key-{OTHER[:12]}"
    assert entry(command("keys", "revoke", KEY, "--reason", "stolen", "--since", "1")) == 2
    assert (key(post)["status"], key(post)["revoked_reason"]) == ("revoked", "stolen")
    assert "revoked " in command("keys", "list").output


def test_approval(post: Poster, command: Command, application: FastAPI) -> None:
    """Anyone may enroll, and results are taken once the operator has approved the key."""
    application.state.settings = Settings(enrollment="approval")
    newcomer = results.private_key(2)
    answer = post.http.post("/api/v1/keys", content=results.enrollment(newcomer), headers=JSON)
    assert (answer.status_code, answer.json()["status"]) == (201, "pending")
    raw = results.sealed(results.make_result(key=newcomer), newcomer)
    held = post.raw(raw)
    assert (held.status_code, held.json()["code"]) == (403, "key_not_active")
    assert "operator's approval" in held.json()["detail"]
    answer = post.ask(newcomer)
    assert answer.json()["code"] == "key_not_active"
    assert f"{OTHER}  pending" in command("keys", "list").output
    entry(command("keys", "approve", OTHER))
    assert post.raw(raw).status_code == 201
    # Approving what was revoked brings nothing back.
    entry(command("keys", "revoke", OTHER, "--reason", "lost"))
    entry(command("keys", "approve", OTHER))
    assert key(post, OTHER)["status"] == "revoked"


def test_owners(post: Poster, command: Command) -> None:
    post.enroll(results.private_key(2))
    post.made()
    entry(command("owners", "assign", KEY, "the lab"))
    entry(command("owners", "assign", OTHER, "the lab"))
    entry(command("owners", "confirm", "the lab"))
    assert "the lab  confirmed  2 keys" in command("owners", "list").output.splitlines()
    assert (key(post)["owner"], key(post)["owner_confirmed"]) == ("the lab", True)
    entry(command("owners", "doubt", "the lab"))
    assert "the lab  unconfirmed  2 keys" in command("owners", "list").output.splitlines()
    assert key(post)["owner_confirmed"] is False


def test_results(post: Poster, command: Command) -> None:
    identity = post.made()
    for act, words in (("flag", "flagged by the operator"), ("quarantine", "held back")):
        entry(command("results", act, identity, "--reason", "looks odd"))
        shown = post.http.get(f"/api/v1/results/{identity}").json()
        assert shown["unranked_reason"].startswith(words)
        assert shown["unranked_reason"].endswith("looks odd")
    entry(command("results", "restore", identity))
    assert post.http.get(f"/api/v1/results/{identity}").json()["ranked"]


def test_a_revoked_key_withdraws_by_the_operator(post: Poster, command: Command) -> None:
    identity, untouched = post.made(), post.made()
    entry(command("keys", "revoke", KEY, "--reason", "lost"))
    refused = said.act(post, "withdraw", result=identity, server_origin="trainmark.localhost")
    assert (refused.status_code, refused.json()["code"]) == (403, "key_not_active")
    hint = refused.json()["hint"]
    assert f"bench-server results withdraw {identity}" in hint
    unconfirmed = command("results", "withdraw", identity)
    assert unconfirmed.exit_code == 2  # nobody answered
    assert "Pass --yes" in unconfirmed.output
    assert post.http.get(f"/api/v1/results/{identity}").status_code == 200
    entry(command(*hint.partition("bench-server ")[2].split(), "--yes"))
    assert post.http.get(f"/api/v1/results/{identity}").status_code == 410
    assert post.http.get(f"/api/v1/results/{untouched}").status_code == 200
    assert command("reindex").exit_code == 0
    verified = command("verify-log")
    assert verified.exit_code == 0, verified.output


def test_invitations(post: Poster, command: Command, application: FastAPI) -> None:
    application.state.settings = Settings(enrollment="invite")
    code = command("create-invite", "--owner", "guests").output.strip()
    expired = command("create-invite", "--days", "0.01").output.strip()
    assert len(code) >= 24
    body = json.loads(results.enrollment(results.private_key(2)))

    def enroll(document: dict[str, object]) -> httpx.Response:
        answer: httpx.Response = post.http.post("/api/v1/keys", json=document)
        return answer

    refused = enroll(body)
    assert (refused.status_code, refused.json()["code"]) == (403, "not_invited")
    assert "BENCH_INVITE=CODE" in refused.json()["hint"]
    taken = enroll(body | {"invite": code})
    assert (taken.status_code, taken.json()["owner"]) == (201, "guests")
    assert enroll(body | {"invite": code}).status_code == 200  # sent again
    other = json.loads(results.enrollment(results.private_key(3)))
    assert enroll(other | {"invite": code}).json()["code"] == "not_invited"
    clock = application.state.clock
    application.state.clock = lambda: clock() + timedelta(days=365)
    assert enroll(other | {"invite": expired}).json()["code"] == "not_invited"


def test_what_cannot_be_is_said_in_a_line(
    post: Poster, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    identity = post.made()
    for arguments, says in (
        (("keys", "approve", "f" * 64), f"no key {'f' * 64} is enrolled"),
        (("results", "flag", "0" * 16, "--reason", "x"), f"no result {'0' * 16}"),
        (("results", "flag", "x", "--reason", "x"), "RESULT_ID is 16 hex digits, the end of"),
        (("keys", "approve", "x"), "KEY_ID is 64 hex digits; bench-server keys list shows"),
        (("results", "flag", identity, "--reason", "x" * 300), "a text of 1 to 200 characters"),
        (("owners", "assign", KEY, "a\nb"), "OWNER is a label of 1 to 80 characters"),
        (("create-invite", "--owner", "a\u202eb"), "the owner's label must have"),
        (("create-invite", "--days", "0"), "--days"),
    ):
        done = command(*arguments)
        assert done.exit_code == 2, (arguments, done.output)
        assert says in done.output
        assert "Traceback" not in done.output
    assert command("results", "flag", identity).exit_code == 2  # a reason is needed
    size = post.http.get("/api/v1/log").json()["size"]
    monkeypatch.setenv("BENCH_SERVER_KEYS_DIR", str(tmp_path / "other-keys"))
    stranger = command("owners", "confirm", "lab")
    assert stranger.exit_code == 2
    assert "BENCH_SERVER_KEYS_DIR" in stranger.output
    assert post.http.get("/api/v1/log").json()["size"] == size


def test_a_loss_of_everything_is_stated_on_demand_alone(store: Store, command: Command) -> None:
    """Every agent then accepts any log."""
    for kept in ((), ("--kept", "0")):
        asked = command("state-break", "--reason", "a new disk", *kept)
        assert asked.exit_code == 2
        assert "Every agent then accepts any log. Pass --yes" in asked.output
    with store.reading() as session:
        assert breaks.notes(session) == ()
    stated = command("state-break", "--reason", "a new disk", "--yes")
    assert stated.output == "stated: the log keeps 0 entries; see the page /log\n"
    assert command("verify-log").exit_code == 0


def test_a_dump_verifies_without_server_and_keys(
    post: Poster, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        post.made()
    dump, altered = tmp_path / "dump.zip", tmp_path / "altered.zip"
    whole = command("verify-log", "--save", str(dump))
    assert whole.exit_code == 0, whole.output
    unwritable = command("verify-log", "--save", str(tmp_path / "no" / "dump.zip"))
    assert unwritable.exit_code == 2
    monkeypatch.setenv("BENCH_SERVER_KEYS_DIR", str(tmp_path / "none"))

    def stranger(*arguments: str) -> Ran:
        nowhere = f"sqlite:///{tmp_path / 'nothing.db'}"
        return CliRunner().invoke(cli, ["verify-log", *arguments, "--database-url", nowhere])

    assert whole.output.startswith(stranger(str(dump)).output)
    key = post.http.get("/api/v1/log").json()["key"]
    assert f"signed by {key}" in whole.output
    with zipfile.ZipFile(dump) as old, zipfile.ZipFile(altered, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.startswith("/api/v1/log/entries"):
                document = json.loads(content)
                document["records"][2]["salt"] = "00" * 32
                content = json.dumps(document).encode()
            new.writestr(name, content)
    outcome = stranger(str(altered))
    assert outcome.exit_code == 1
    assert "WRONG entry 2: edited" in outcome.output
    dump.write_bytes(dump.read_bytes()[:100])
    missing = tmp_path / "missing.zip"
    for file, words in (
        (dump, "is not a dump of a log"),
        (missing, "cannot be read (No such file"),
    ):
        outcome = stranger(str(file))
        assert outcome.exit_code == 2
        assert words in outcome.output
        assert "verify-log ADDRESS --save FILE makes a dump" in outcome.output
        assert "[Errno" not in outcome.output
    nobody = stranger("http://127.0.0.1:1")
    assert "http://127.0.0.1:1 does not answer: Connection refused" in nobody.output
    assert not list(tmp_path.glob(".*partial"))
