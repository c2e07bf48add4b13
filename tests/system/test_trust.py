"""Trust with a real agent and server: receipts, challenges, log witness, keys, own results."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text
from tests.fakes import outboxes, results
from tests.fakes.live import running_server
from tests.fakes.projected import settled
from tests.system.conftest import Agent, Operator

from bench_agent.base.errors import HomeProblem, LogContradiction, ServerUnreachable
from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key, next_key
from bench_agent.remote.client import Client, ServerRefused
from bench_agent.remote.outbox import Outbox
from bench_agent.remote.submit import submit
from bench_agent.remote.verify import fetch_bundle, verify
from bench_agent.run.sign import RunClock
from bench_protocol.errors import BadSignature, ProtocolError
from bench_protocol.keys import key_id
from bench_protocol.result import Agent as WireAgent
from bench_protocol.result import Clocks
from bench_server.db import migrate
from bench_server.db.store import Store, open_engine


@pytest.fixture
def database(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'server.db'}"
    engine = open_engine(url)
    migrate.migrate(engine)
    engine.dispose()
    return url


@pytest.fixture
def address(database: str, tmp_path: Path) -> Iterator[str]:
    with running_server(database, tmp_path) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "agent")


@pytest.fixture
def client(address: str, home: Home) -> Iterator[Client]:
    made = Client(address, load_or_create_key(home), home)
    assert made.witness is not None
    made.witness.meet()
    made.witness.agree("CC-BY-4.0")
    yield made
    made.close()


def put(home: Home, count: int = 1, client: Client | None = None) -> None:
    """Results signed by the agent's key; with a client bound to a challenge, as a run does it."""
    key = load_or_create_key(home)
    author = WireAgent(version="0.1.0", key_id=key_id(key.public_key()))
    for _ in range(count):
        made = results.make_result(key=key, agent=author)
        if client is not None:
            challenge, clock = client.challenge().challenge, RunClock()
            now, at = clock.now(), clock.started.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            end = now.since_start_ns + 2
            clocks = Clocks(
                run_started=at, started=at, finished=at, signed=at,
                started_ns=0, finished_ns=end, signed_ns=end,
            )  # fmt: skip
            made = made.model_copy(update={"challenge": challenge, "clocks": clocks})
        outboxes.put(Outbox(home.outbox), made, key)


def sent(home: Home, client: Client) -> list[str]:
    return [d.answer["id"] for d in submit(client, Outbox(home.outbox))]


def test_receipts_are_checked_and_kept(home: Home, client: Client) -> None:
    put(home, 3)
    identities = sent(home, client)
    answers = [entry.answer for entry in Outbox(home.outbox).sent()]
    assert [answer["id"] for answer in answers if answer] == identities
    assert all(answer["receipt"]["proof"] for answer in answers if answer)
    verified = verify(fetch_bundle(identities[0], client.read))
    assert verified.log_index == 1
    assert any("entry 1 of" in sentence for sentence in verified.sentences)


def test_a_challenge_raises_the_trust(home: Home, client: Client) -> None:
    put(home)
    sent(home, client)  # enrolls
    put(home, 1, client)
    (bound,) = sent(home, client)
    stored = json.loads(client.fetch(f"/api/v1/results/{bound}?wait=10"))
    verdicts = {v["check"]: v for v in stored["verdicts"]}
    assert verdicts["challenge"]["passed"], verdicts["challenge"]
    assert verdicts["times_fit"]["effect"] == "unranked"
    assert verdicts["clocks"]["passed"], verdicts["clocks"]
    assert stored["trust_level"] == 2


def test_nothing_is_sent_before_a_person_agreed(address: str, home: Home) -> None:
    put(home)
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
    put(home)
    assert agent("submit", "--server", address).code == 0


def test_submit_says_what_no_challenge_and_an_expired_one_cost(
    address: str, home: Home, client: Client, database: str
) -> None:
    agent = Agent(home.root)
    put(home)
    output = agent("submit", "--server", address).stdout
    assert output.startswith(
        "1 sent, 0 refused\n1 of 1 stay at trust level 1: measured without a ch"
    )
    put(home, 2, client)
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
    put(home, 1, client)
    told = agent("submit", "--server", address).stdout
    identity = (list(Outbox(home.outbox).sent())[-1].answer or {})["id"]
    last = f"The last one is not on its board yet:\n  {address}/results/{identity}\n"
    assert told == f"1 sent, 0 refused\n{last}"


def rewind(database: str, keep: int) -> None:
    """Make the log forget its newest entries, as someone with the database could."""
    store = Store(database)
    with store.writing() as session:
        for statement in (
            "DELETE FROM standing",
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
        put(home, count)
        sent(home, client)
    rewind(database, 2)
    put(home)
    with pytest.raises(LogContradiction, match="had 4 entries and shows 2"):
        sent(home, client)
    assert len(list(Outbox(home.outbox).pending())) == 1
    (evidence,) = home.servers.glob("*.contradiction")
    assert evidence.read_text().count("trainmark.localhost\n") == 2


def test_two_checkpoints_of_one_size_are_refused(
    home: Home, client: Client, database: str, tmp_path: Path
) -> None:
    """The server forgets, then logs something else up to the same size: signed by its own key."""
    for _ in range(2):  # a checkpoint each
        put(home)
        sent(home, client)
    rewind(database, 2)
    other = Client(client.server, results.private_key(9), Home(tmp_path / "other"))
    other.enroll()
    assert json.loads(client.fetch("/api/v1/log"))["size"] == 3
    put(home)
    with pytest.raises(LogContradiction, match="two different trees have size 3"):
        sent(home, client)
    other.close()


def test_rotation_keeps_the_machine_and_revocation_ends_the_key(home: Home, client: Client) -> None:
    put(home)
    (first,) = sent(home, client)
    old, new = load_or_create_key(home), next_key(home)
    answer = client.rotate(new)
    assert answer["first_key_id"] == key_id(old.public_key())
    put(home)
    with pytest.raises(ServerUnreachable, match="was rotated"):
        sent(home, client)
    shutil.rmtree(home.outbox)
    home.key.with_suffix(".next.pem").replace(home.key)
    renewed = Client(client.server, new, home)
    put(home)
    (second,) = sent(home, renewed)
    rows = [json.loads(renewed.fetch(f"/api/v1/results/{i}?wait=10")) for i in (first, second)]
    assert rows[0]["machine_id"] == rows[1]["machine_id"]
    bundle = fetch_bundle(second, renewed.read)
    assert "enroll, rotate" in verify(bundle).sentences[0]
    renewed.revoke(key_id(new.public_key()), "stolen", 3)
    with pytest.raises(ServerRefused, match="signs no more"):
        renewed.challenge()
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


def test_a_bundle_holds_offline_and_no_part_of_it_can_be_changed(
    home: Home, client: Client, tmp_path: Path
) -> None:
    put(home, 2)
    identity, other = sent(home, client)
    agent, file = Agent(home.root), tmp_path / "bundle.json"
    done = agent("verify", f"{client.server}/results/{identity}", "--save", str(file))
    assert done.code == 0, done.stderr
    offline = agent("verify", str(file))
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
    put(home)
    (identity,) = sent(home, client)
    address = f"{client.server}/results/{identity}"
    shown = json.loads(client.fetch(f"/api/v1/results/{identity}?wait=10"))["shows"]
    agent, file = Agent(home.root), tmp_path / "bundle.json"
    assert agent("verify", address, "--save", str(file), "--json").json()["shows"] == shown
    assert agent("verify", str(file), "--json").json()["shows"] == shown
    words = agent("verify", str(file)).stdout
    assert "what it shows, by its server at trust level 1" in words
    assert "does not hold  Measured under a fresh challenge: measured without a challenge" in words
    bundle = json.loads(file.read_text())
    file.write_text(json.dumps(bundle | {"judged": {"status": "measured", "trust_level": 1}}))
    assert agent("verify", str(file)).code == 1
    del bundle["judged"]
    file.write_text(json.dumps(bundle))
    statements = agent("verify", str(file), "--json").json()["shows"]
    assert [one["what"] for one in statements if one["status"] == "holds"] == ["signature", "log"]


def test_a_key_revoked_by_its_owners_other_key_is_checked(
    home: Home, client: Client, database: str, tmp_path: Path
) -> None:
    """The bundle contains every proof that the other key may revoke, and each is checked."""
    put(home, 2)
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
        "keys", "revoke", "--key", first_key, "--since", "2", "--reason", "stolen", "--yes",
        "--server", client.server,
    )  # fmt: skip
    assert revoked.code == 0, revoked.stderr
    file = tmp_path / "bundle.json"
    holds = agent("verify", f"{client.server}/results/{early}", "--save", str(file))
    assert holds.code == 0, holds.stderr
    assert "OK  key history (5 events: enroll, enroll, assign, assign, revoke)" in holds.stdout
    broken = agent("verify", f"{client.server}/results/{late}")
    assert broken.code == 1
    assert "revoked for what was logged from entry 2 on" in broken.stderr
    bundle = json.loads(file.read_text())
    for left_out in range(5):
        events = [e for n, e in enumerate(bundle["key"]["events"]) if n != left_out]
        if left_out < 4:  # without the revocation itself nothing is missing
            with pytest.raises(ProtocolError):
                verify(bundle | {"key": {"events": events}})
    other.close()


def test_a_file_of_the_outbox_is_verified(address: str, home: Home, client: Client) -> None:
    put(home)
    agent, outbox = Agent(home.root), Outbox(home.outbox)
    waiting = agent("verify", str(next(outbox.pending()).path))
    assert (waiting.code, waiting.stderr) == (0, "not sent: no log holds it yet\n")
    assert waiting.stdout.splitlines()[-1].startswith("It is signed and unaltered. ")
    sent(home, client)
    file = next(outbox.sent()).path
    online = agent("verify", str(file))
    assert online.code == 0, online.stderr
    assert "key history (1 event: enroll)" in online.stdout
    assert "entry 1 of 2 in the log of trainmark.localhost" in online.stdout
    server_file = next(home.servers.glob("*.json"))
    server_file.write_text(server_file.read_text().replace(address, "http://127.0.0.1:9"))
    offline = agent("verify", str(file), "--json")
    assert offline.code == 0, offline.stderr
    assert "the key's history was not checked" in offline.stderr
    assert offline.json()["log_index"] == 1
    other = Agent(home.root.with_name("other"))
    assert other("verify", str(file)).code == 1  # it never saw this log
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document | {"payload": document["payload"].replace("M", "N", 1)}))
    altered = agent("verify", str(file))
    assert altered.code == 1
    assert "NOT VALID" in altered.stderr
    file.write_text("{}")
    assert agent("verify", str(file)).code == 2


def test_looking_makes_no_key_and_says_what_it_wants(
    home: Home, client: Client, tmp_path: Path
) -> None:
    put(home)
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
    put(home)
    (identity,) = sent(home, client)
    for code, says, arguments in (
        (0, "hide done", ("results", "hide", identity, *at)),
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
    put(home, 3)
    hidden, gone, left = sent(home, client)
    agent = Agent(home.root)
    at = ("--server", client.server)
    assert agent("results", "hide", hidden, *at).code == 0
    assert agent("results", "withdraw", gone, *at, "--yes").code == 0
    assert agent("results", "pseudonymise", "--name", "somebody", *at).code == 0
    settled(client.server)
    listed = json.loads(agent("results", "list", *at, "--json").stdout)
    assert [(row["id"], row["moderation"]) for row in listed] == [(hidden, "hidden"), (left, None)]
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
    assert [row["id"] for row in rows] == [hidden, left]
    assert all(row["envelope"]["payload"] and row["receipt"]["proof"] for row in rows)
    assert "somebody" in httpx.get(f"{client.server}/results/{left}").text


def test_who_kept_the_receipt_of_a_withdrawn_result_can_still_prove_it(
    home: Home, client: Client, database: str
) -> None:
    put(home)
    (identity,) = sent(home, client)
    entry = next(Outbox(home.outbox).sent())
    raw, answer = entry.raw, entry.answer
    assert answer is not None
    client.act("withdraw", identity)
    done = Agent(home.root)("verify", f"{client.server}/results/{identity}")
    assert done.code == 1
    assert f"result {identity} was withdrawn" in done.stderr
    assert Agent(home.root)("verify", str(entry.path)).code == 0
    assert client.witness is not None
    client.witness.check([(raw, answer["receipt"])])
    again = httpx.post(
        f"{client.server}/api/v1/results", content=raw, headers={"Content-Type": "application/json"}
    )
    assert (again.status_code, again.json()["code"]) == (410, "gone")
    payload = json.loads(raw)["payload"].encode()
    for part in Path(database.removeprefix("sqlite:///")).parent.glob("server.db*"):
        assert payload[:200] not in part.read_bytes()


def test_a_key_that_others_can_reach_is_refused(home: Home) -> None:
    load_or_create_key(home)
    home.key.parent.chmod(0o750)
    with pytest.raises(HomeProblem, match="chmod 700"):
        load_or_create_key(home)
