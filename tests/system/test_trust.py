"""Trust with a real agent and server: receipts, challenges, checkpoints, keys, own results."""

import json
import shutil
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text
from tests.fakes import results
from tests.fakes.outboxes import put_new, sent
from tests.fakes.projected import settled
from tests.system.conftest import Agent

from bench_agent.base.errors import LogContradiction, ServerUnreachable
from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key, next_key
from bench_agent.remote.client import Client, ServerRefused
from bench_agent.remote.outbox import Outbox
from bench_agent.remote.verify import fetch_bundle, verify
from bench_protocol.base.errors import BadSignature
from bench_protocol.signing.keys import key_id
from bench_server.db.store import Store


def test_nothing_is_sent_before_a_person_agreed(address: str, home: Home) -> None:
    put_new(home)
    fresh = Client(address, load_or_create_key(home), home)
    with pytest.raises(ServerUnreachable, match="bench-agent submit asks"):
        sent(home, fresh)
    fresh.close()
    agent = Agent(home.root)
    refused = agent("submit", "--server", address)
    assert refused.code == 2
    assert "CC-BY-4.0" in refused.stderr
    assert "Not sent: names of host and user" in refused.stderr
    assert "a hash that tells this machine from others" in refused.stderr
    assert httpx.get(f"{address}/api/v1/results").json()["results"] == []
    assert agent("submit", "--server", address, "--yes").code == 0
    put_new(home)
    assert agent("submit", "--server", address).code == 0


def test_submit_says_what_no_challenge_and_an_expired_one_cost(
    address: str, home: Home, client: Client, database: str
) -> None:
    agent = Agent(home.root)
    put_new(home)
    said = agent("submit", "--server", address)
    never = "0 of 1 result can be ranked.\nNever ranked: 1 measured without a server; to measure"
    assert said.stderr.startswith(never)
    assert said.stdout.startswith("1 sent, 0 refused\nThe last result is on no leaderboard:")
    put_new(home, 2, client)
    store = Store(database)
    with store.writing() as session:
        expire = "UPDATE challenge SET expires_at = '2020-01-01 00:00:00.000000' WHERE id = :id"
        expired = next(Outbox(home.outbox).pending()).result().challenge
        assert expired is not None
        session.connection().execute(text(expire), {"id": expired.id})
    store.close()
    output = agent("submit", "--server", address).stdout
    assert (
        "1 of 2 stay at trust level 1: its challenge had expired when it arrived; fix: " in output
    )
    put_new(home, 1, client)
    told = agent("submit", "--server", address).stdout
    identity = (list(Outbox(home.outbox).sent())[-1].answer or {})["id"]
    last = f"The last result is on no leaderboard:\n  {address}/results/{identity}\n"
    assert told == f"1 sent, 0 refused\n{last}"


def rewind(database: str, keep: int) -> None:
    store = Store(database)
    with store.writing() as session:
        for statement in (
            "DELETE FROM aggregate",
            "DELETE FROM measurement WHERE log_index >= :n",
            "DELETE FROM log_entry WHERE log_index >= :n",
            "DELETE FROM log_checkpoint WHERE size > :n",
            "DELETE FROM log_node WHERE (position + 1) << level > :n",
        ):
            parameters = {"n": keep} if ":n" in statement else {}
            session.connection().execute(text(statement), parameters)
    store.close()


def test_a_log_that_forgot_is_refused(
    home: Home, client: Client, database: str, tmp_path: Path
) -> None:
    for count in (1, 2):  # a checkpoint each
        put_new(home, count)
        sent(home, client)
    rewind(database, 3)
    put_new(home)
    with pytest.raises(LogContradiction, match="had 5 entries and shows 3"):
        sent(home, client)
    assert len(list(Outbox(home.outbox).pending())) == 1
    (evidence,) = home.servers.glob("*.contradiction")
    assert evidence.read_text().count("trainmark.localhost\n") == 2


def test_two_checkpoints_of_one_size_are_refused(
    home: Home, client: Client, database: str, tmp_path: Path
) -> None:
    """The server forgets, then logs something else up to the same size: signed by its own key."""
    for _ in range(2):  # a checkpoint each
        put_new(home)
        sent(home, client)
    rewind(database, 2)
    other = Client(client.server, results.private_key(9), Home(tmp_path / "other"))
    other.enroll()
    assert json.loads(client.fetch("/api/v1/log"))["size"] == 4
    put_new(home)
    with pytest.raises(LogContradiction, match="two different trees have size 4"):
        sent(home, client)
    other.close()


def test_rotation_keeps_the_machine_and_revocation_ends_the_key(home: Home, client: Client) -> None:
    put_new(home)
    (first,) = sent(home, client)
    old, new = load_or_create_key(home), next_key(home)
    answer = client.rotate(new)
    assert answer["first_key_id"] == key_id(old.public_key())
    put_new(home)
    with pytest.raises(ServerUnreachable, match="was rotated"):
        sent(home, client)
    shutil.rmtree(home.outbox)
    home.key.with_suffix(".next.pem").replace(home.key)
    renewed = Client(client.server, new, home)
    put_new(home)
    (second,) = sent(home, renewed)
    rows = [json.loads(renewed.fetch(f"/api/v1/results/{i}?wait=10")) for i in (first, second)]
    assert rows[0]["machine_id"] == rows[1]["machine_id"]
    bundle = fetch_bundle(second, renewed.read)
    assert "enroll, rotate" in verify(bundle).sentences[0]
    renewed.revoke(key_id(new.public_key()), "stolen", 3)
    with pytest.raises(ServerRefused, match="signs no more"):
        renewed.challenge("a" * 32)
    bundle = fetch_bundle(second, renewed.read)
    with pytest.raises(BadSignature, match="revoked"):
        verify(bundle)
    settled(renewed.server)
    row = json.loads(renewed.fetch(f"/api/v1/results/{second}"))
    assert not row["ranked"]
    assert "stolen" in row["unranked_reason"]
    before = json.loads(renewed.fetch(f"/api/v1/results/{first}"))
    assert before["unranked_reason"].startswith("trust level 1: measured without a challenge")
    renewed.close()


def test_looking_makes_no_key_and_says_what_it_wants(
    home: Home, client: Client, tmp_path: Path
) -> None:
    put_new(home)
    (identity,) = sent(home, client)
    stranger = Agent(tmp_path / "stranger")
    held = stranger("verify", f"{client.server}/results/{identity}")
    assert held.code == 0, held.stderr
    envelope = next(Outbox(home.outbox).sent()).path
    shutil.copy(envelope, tmp_path / "envelope.json")
    done = stranger("verify", str(tmp_path / "envelope.json"))
    assert (done.code, "is not this machine's" in done.stderr) == (2, True)
    assert not Home(stranger.home).key.exists()
    for what, says in (
        (client.server, "http://SERVER/results/ID"),
        (f"{client.server}/machines/{identity}", "is not the address of a result"),
        (str(envelope.with_suffix(".answer")), f"bench-agent verify {envelope}"),
    ):
        wrong = stranger("verify", what)
        assert (wrong.code, says in wrong.stderr) == (2, True), wrong.stderr


def test_owners_commands_end_as_documented(home: Home, client: Client, address: str) -> None:
    agent, at = Agent(home.root), ("--server", address)
    enrolled = agent("enroll", *at)
    assert enrolled.code == 0
    assert "published under CC-BY-4.0" in enrolled.stdout
    put_new(home)
    (identity,) = sent(home, client)
    for code, says, arguments in (
        *[(0, "hide done", ("results", "hide", identity, *at))] * 2,
        (1, "no result", ("results", "show", "0" * 16, *at)),
        (2, "result: ", ("results", "show", "zzz", *at)),
        (2, "key_id: ", ("keys", "revoke", "--key", "zzz", "--yes", *at)),
        (3, "does not answer", ("results", "list", "--server", "http://127.0.0.1:9")),
    ):
        done = agent(*arguments)
        assert done.code == code, done.stderr
        assert says in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_ones_own_results(home: Home, client: Client, tmp_path: Path) -> None:
    put_new(home, 3)
    hidden, gone, left = sent(home, client)
    agent = Agent(home.root)
    at = ("--server", client.server)
    assert agent("results", "hide", hidden, *at).code == 0
    assert agent("results", "withdraw", gone, *at, "--yes").code == 0
    settled(client.server)
    listed = json.loads(agent("results", "list", *at, "--json").stdout)
    # Those of one request are of one moment, so their order is that of their ids, which are random.
    assert {row["id"]: row["moderation"] for row in listed} == {hidden: "hidden", left: None}
    settled(client.server)
    for identity, words in ((hidden, "hidden by its sender"), (gone, "was withdrawn")):
        answer = httpx.get(f"{client.server}/api/v1/results/{identity}")
        assert (answer.status_code, answer.json()["code"]) == (410, "gone")
        assert words in answer.json()["detail"]
    assert agent("results", "show", hidden, *at).code == 0
    settled(client.server)
    assert httpx.get(f"{client.server}/api/v1/results/{hidden}").status_code == 200
    file = tmp_path / "mine.jsonl"
    assert agent("results", "export", str(file), *at).code == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["id"] for row in rows} == {hidden, left}
    assert all(row["envelope"]["payload"] and row["receipt"]["proof"] for row in rows)
