"""``verify`` with a real agent and server: bundles, files of the outbox, withdrawn results."""

import json
from pathlib import Path

import httpx
import pytest
from tests.fakes.outboxes import put_new, sent
from tests.system.conftest import Agent, Operator

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.remote.client import Client
from bench_agent.remote.outbox import Outbox
from bench_agent.remote.verify import fetch_bundle, verify
from bench_protocol.base.errors import ProtocolError
from bench_protocol.signing.keys import key_id


def test_a_bundle_holds_offline_and_no_part_of_it_can_be_changed(
    home: Home, client: Client, tmp_path: Path
) -> None:
    put_new(home, 2)
    identity, other = sent(home, client)
    agent, file = Agent(home.root), tmp_path / "bundle.json"
    done = agent("verify", f"{client.server}/results/{identity}", "--save", str(file))
    assert done.code == 0, done.stderr
    offline = agent("verify", str(file), "--all")
    assert offline.code == 0
    assert sum(line.startswith("OK  ") for line in offline.stdout.splitlines()) == 3
    bundle, second = json.loads(file.read_text()), fetch_bundle(other, client.read)
    for part, value in (
        ("envelope", second["envelope"]),
        ("receipt", second["receipt"]),
        ("receipt", bundle["receipt"] | {"salt": "0" * 64}),
        ("log", bundle["log"] | {"key": "a+12345678+AAAA"}),
        ("key", bundle["key"] | {"events": []}),
    ):
        with pytest.raises(ProtocolError):
            verify(bundle | {part: value})
    file.write_text(json.dumps(bundle | {"receipt": second["receipt"]}))
    assert agent("verify", str(file)).code == 1


def test_verify_says_what_a_result_shows_as_its_server_does(
    home: Home, client: Client, tmp_path: Path
) -> None:
    put_new(home)
    (identity,) = sent(home, client)
    address = f"{client.server}/results/{identity}"
    shown = json.loads(client.fetch(f"/api/v1/results/{identity}?wait=10"))["shows"]
    agent, file = Agent(home.root), tmp_path / "bundle.json"
    saved = agent("verify", address, "--save", str(file), "--json")
    assert (saved.json()["shows"], f"saved {file}" in saved.stderr) == (shown, True)
    nowhere = agent("verify", address, "--save", str(file / "bundle.json"))
    assert (nowhere.code, "--save: cannot write" in nowhere.stderr) == (2, True)
    assert agent("verify", str(file), "--json").json()["shows"] == shown
    words = agent("verify", str(file)).stdout
    assert words.startswith("Genuine and logged, if the log's key below is the server's. Speed and")
    assert "The server gives it trust level 1" in words
    assert (
        "\nDoes not hold: Measured under a fresh challenge: measured without a challenge" in words
    )
    online = agent("verify", address, "--all").stdout
    assert online.startswith("Genuine and logged. Speed and hardware: sender's word.\n")
    assert "The log's key came with the bundle. The server's page /log must show" in words
    assert "does not hold  Measured under a fresh challenge: measured without a challenge" in online
    bundle = json.loads(file.read_text())
    file.write_text(json.dumps(bundle | {"judged": {"status": "measured", "trust_level": 1}}))
    assert agent("verify", str(file)).code == 1
    del bundle["judged"]
    file.write_text(json.dumps(bundle))
    claims = agent("verify", str(file), "--json").json()["shows"]
    assert [one["what"] for one in claims if one["status"] == "holds"] == ["signature", "log"]


def test_a_key_revoked_by_its_owners_other_key_is_checked(
    home: Home, client: Client, database: str, tmp_path: Path
) -> None:
    """The bundle contains every proof that the other key may revoke, and each is checked."""
    put_new(home, 2)
    early, late = sent(home, client)
    other_home = Home(tmp_path / "other")
    other = Client(client.server, load_or_create_key(other_home), other_home)
    other.enroll()
    first_key, sibling = (key_id(load_or_create_key(h).public_key()) for h in (home, other_home))
    operator = Operator(database, tmp_path)
    for key in (first_key, sibling):
        assert operator("owners", "assign", key, "lab").code == 0
    agent = Agent(other_home.root)
    revoked = agent(
        "keys", "revoke", "--key", first_key, "--since", "3", "--reason", "stolen", "--yes",
        "--server", client.server,
    )  # fmt: skip
    assert revoked.code == 0, revoked.stderr
    file = tmp_path / "bundle.json"
    holds = agent("verify", f"{client.server}/results/{early}", "--save", str(file), "--all")
    assert holds.code == 0, holds.stderr
    assert (
        "OK  the key's history is valid (5 events: enroll, enroll, assign, assign, revoke)"
        in holds.stdout
    )
    broken = agent("verify", f"{client.server}/results/{late}")
    assert broken.code == 1
    assert "revoked for what was logged from entry 3 on" in broken.stderr
    bundle = json.loads(file.read_text())
    for left_out in range(5):
        events = [e for n, e in enumerate(bundle["key"]["events"]) if n != left_out]
        if left_out < 4:  # without the revocation itself nothing is missing
            with pytest.raises(ProtocolError):
                verify(bundle | {"key": {"events": events}})
    other.close()


def test_a_file_of_the_outbox_is_verified(address: str, home: Home, client: Client) -> None:
    put_new(home)
    agent, outbox = Agent(home.root), Outbox(home.outbox)
    waiting = agent("verify", str(next(outbox.pending()).path))
    assert (waiting.code, waiting.stderr) == (0, "It was not sent, so it is in no log.\n")
    assert waiting.stdout.startswith("Genuine, in no log yet. ")
    sent(home, client)
    file = next(outbox.sent()).path
    online = agent("verify", str(file), "--all")
    assert online.code == 0, online.stderr
    assert "the key's history is valid (1 event: enroll)" in online.stdout
    assert "entry 2 in the log of trainmark.localhost" in online.stdout
    server_file = next(home.servers.glob("*.json"))
    server_file.write_text(server_file.read_text().replace(address, "http://127.0.0.1:9"))
    offline = agent("verify", str(file), "--json")
    assert offline.code == 0, offline.stderr
    assert "The key's history was not checked" in offline.stderr
    assert offline.json()["log_index"] == 2
    other = Agent(home.root.with_name("other"))
    assert other("verify", str(file)).code == 1  # it never saw this log
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document | {"payload": document["payload"].replace("M", "N", 1)}))
    altered = agent("verify", str(file))
    assert altered.code == 1
    assert "NOT VALID" in altered.stderr
    file.write_text("{}")
    assert agent("verify", str(file)).code == 2


def test_who_kept_the_receipt_of_a_withdrawn_result_can_still_prove_it(
    home: Home, client: Client, database: str
) -> None:
    put_new(home)
    (identity,) = sent(home, client)
    entry = next(Outbox(home.outbox).sent())
    raw, answer = entry.raw, entry.answer
    assert answer is not None
    client.act("withdraw", identity)
    done = Agent(home.root)("verify", f"{client.server}/results/{identity}")
    assert done.code == 1
    assert f"result {identity} was withdrawn" in done.stderr
    assert Agent(home.root)("verify", str(entry.path)).code == 0
    assert client.checkpoints is not None
    client.checkpoints.check([(raw, answer["receipt"])])
    again = httpx.post(
        f"{client.server}/api/v1/results", content=raw, headers={"Content-Type": "application/json"}
    )
    assert (again.status_code, again.json()["code"]) == (410, "gone")
    payload = json.loads(raw)["payload"].encode()
    for part in Path(database.removeprefix("sqlite:///")).parent.glob("server.db*"):
        assert payload[:200] not in part.read_bytes()
