"""``make audit``: attack a server in every way we know, and show how each is found.

Starts a real server on loopback with a database of its own, submits from three keys, sends what
must not be believed, then tampers with copies of the database behind the server's back and lets
``verify-log`` look for it. Then come the groups of ``attacks``.
``MUTATIONS``: the number of mutated envelopes, and of requests (10,000). Exit code 1 if anything
passes unseen.
"""

import argparse
import base64
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from tests.evidence.attacks import Group, Line
from tests.evidence.attacks.asks import asks
from tests.evidence.attacks.damage import flips
from tests.evidence.attacks.floods import floods
from tests.evidence.attacks.forged import forged
from tests.evidence.attacks.mutations import mutations
from tests.evidence.attacks.owners import fresh_owners
from tests.evidence.attacks.reproduction import reproduction
from tests.evidence.attacks.requests import requests
from tests.fakes import results
from tests.fakes.client import bind
from tests.fakes.live import running_server

from bench_protocol.base import strict_json
from bench_protocol.payload import acts, statement
from bench_protocol.payload.acts import Revocation
from bench_protocol.payload.result import Challenge
from bench_protocol.signing import envelope, merkle
from bench_protocol.signing.receipts import Checkpoint
from bench_server.answers.log_entries import fetch_from
from bench_server.audit.chunk import Fault
from bench_server.audit.verify import audit
from bench_server.cli.verify_log import get
from bench_server.db import migrate
from bench_server.db.store import Store, open_engine
from bench_server.log.server_keys import Authority, load_authority
from bench_server.projection.apply import apply_entries
from bench_server.projection.entries import KeyEventEntry
from bench_server.settings import DEFAULT_ORIGIN as ORIGIN

JSON = {"Content-Type": "application/json"}
KEYS = [results.private_key(seed) for seed in (1, 2, 3)]
# Of the column of attacks.
WIDTH = 64
# Keys that an address may enroll in a day (docs/operating.md).
A_DAY = 20
MUTATIONS = int(os.environ.get("MUTATIONS", "10000"))
# Each runs in a folder of its own. Add a group of attacks here.
GROUPS: dict[str, Group] = {
    "forged": forged,
    "owners": fresh_owners,
    "reproduction": reproduction,
    "asks": asks,
    "flips": flips,
    "floods": floods,
    "mutations": partial(mutations, count=MUTATIONS),
    "requests": partial(requests, count=MUTATIONS),
}


def submit(http: httpx.Client, raw: bytes) -> httpx.Response:
    return http.post("/api/v1/results", content=raw, headers=JSON)


def refused(attack: str, answer: httpx.Response, code: str) -> Line:
    said = answer.json()
    return Line(
        attack, f"{answer.status_code} {said.get('code', 'accepted')}", said.get("code") == code
    )


def level_one(
    http: httpx.Client, attack: str, answer: httpx.Response, check: str, says: str
) -> Line:
    """A result that is kept, at trust level 1, with the reason in its verdicts."""
    said = answer.json()
    sentence = next(v["sentence"] for v in said["verdicts"] if v["check"] == check)
    level = http.get(f"/api/v1/results/{said['id']}?wait=10").json()["trust_level"]
    found = answer.status_code == 201 and level == 1 and says in sentence
    return Line(attack, f"kept at level {level}: {sentence}", found)


def challenged(http: httpx.Client, key: Any) -> Challenge:
    body = results.challenge_request(key, http.get("/api/v1/log").json()["origin"])
    given = http.post("/api/v1/challenges", content=body, headers=JSON).json()
    return Challenge(**{name: given[name] for name in Challenge.model_fields})


def live_attacks(http: httpx.Client) -> Iterator[Line]:
    """What a stranger can send."""
    raw = results.sealed(results.make_result(key=KEYS[0]), KEYS[0])
    document = json.loads(raw)
    payload = bytearray(base64.b64decode(document["payload"]))
    payload[len(payload) // 2] ^= 1
    altered = document | {"payload": base64.b64encode(payload).decode()}
    yield refused("one altered byte", submit(http, json.dumps(altered).encode()), "bad_signature")

    signed_by_other = results.sealed(results.make_result(key=KEYS[0]), KEYS[1])
    yield refused("signed by another key", submit(http, signed_by_other), "bad_signature")
    renamed = json.loads(raw)
    renamed["signatures"][0]["keyid"] = results.key_id(KEYS[1])
    yield refused(
        "key id of another key", submit(http, json.dumps(renamed).encode()), "bad_signature"
    )
    unaltered = base64.b64decode(document["payload"])
    other_type = envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, unaltered, KEYS[0])
    yield refused("payload of another type", submit(http, other_type), "wrong_payload_type")

    weak = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + bytes(32)).decode()
    event = json.loads(statement.key_event_payload(
        statement.enroll_event(KEYS[0].public_key(), results.AT)
    )) | {"public_key": weak}  # fmt: skip
    sealed = envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, strict_json.dumps(event), KEYS[0])
    answer = http.post("/api/v1/keys", content=b'{"envelope":%s}' % sealed, headers=JSON)
    yield refused("a key of small order", answer, "unacceptable_key")

    # Of ASCII only "?", ">" and "~" at every third place need the letters that alphabets differ in.
    machine = results.make_machine("Processor ???")
    once = results.sealed(results.make_result(key=KEYS[1], machine=machine), KEYS[1])
    size = http.get("/api/v1/log").json()["size"]
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda _: submit(http, once), range(8))]
    grown = http.get("/api/v1/log").json()["size"] - size
    same = len({a.text for a in answers}) == 1
    yield Line(
        "one payload eight times at once", f"{grown} leaf, one receipt: {same}", grown == 1 and same
    )
    variant = json.loads(once)
    variant["payload"] = variant["payload"].replace("+", "-").replace("/", "_")
    answer = submit(http, json.dumps(variant, indent=2).encode())
    again = answer.status_code == 200 and answer.text == answers[0].text
    is_other = variant["payload"] != json.loads(once)["payload"]
    yield Line(
        "the same payload in other base64",
        f"{answer.status_code}, the first receipt: {again}",
        again and is_other,
    )

    challenge = challenged(http, KEYS[0])
    cell = results.make_cell("fashion-mlp")
    bound = {"challenge": challenge, "cell": cell, "key": KEYS[0]}
    submit(http, results.sealed(results.make_result(**bound), KEYS[0]))
    answer = submit(http, results.sealed(results.make_result(**bound, step_ns=1), KEYS[0]))
    yield refused("a challenge used twice", answer, "conflict")
    foreign = results.make_result(challenge=challenge, key=KEYS[1], cell=cell)
    answer = submit(http, results.sealed(foreign, KEYS[1]))
    yield level_one(http, "a challenge of another key", answer, "challenge", "did not give this")
    jumped = results.make_result(challenge=challenged(http, KEYS[2]), key=KEYS[2], cell=cell)
    answer = submit(http, results.sealed(jumped, KEYS[2]))
    yield level_one(
        http, "a clock that jumped", answer, "clocks", "its wall clock went on by 0.0 s"
    )

    revocation = Revocation(
        event="revoke",
        key_id=results.key_id(KEYS[2]), reason="stolen", compromised_since_log_index=0,
        server_origin=ORIGIN, at=results.AT,
    )  # fmt: skip
    sealed = envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, acts.payload(revocation), KEYS[2])
    http.post("/api/v1/keys", content=b'{"envelope":%s}' % sealed, headers=JSON)
    late = results.sealed(results.make_result(key=KEYS[2]), KEYS[2])
    yield refused("a revoked key", submit(http, late), "key_not_active")

    fresh = [results.enrollment(results.private_key(seed)) for seed in range(100, 121)]
    answers = [http.post("/api/v1/keys", content=body, headers=JSON) for body in fresh]
    enrolled = len(KEYS) + sum(answer.status_code == 201 for answer in answers)
    yield Line(
        "24 keys of one address in a day",
        f"{enrolled} enrolled, then {answers[-1].status_code} {answers[-1].json()['code']}",
        enrolled == A_DAY and answers[-1].status_code == 429,
    )


Tamper = Callable[[sqlite3.Connection, Authority], int | None]


def _edit_payload(db: sqlite3.Connection, _: Authority) -> int:
    (index, identity, payload) = db.execute(
        "SELECT log_index, id, payload FROM submission JOIN measurement ON id = submission_id"
        " ORDER BY log_index LIMIT 1 OFFSET 2"
    ).fetchone()
    db.execute(
        "UPDATE submission SET payload = ? WHERE id = ?", (payload.replace(b"1", b"2", 1), identity)
    )
    return int(index)


def _drop_row(db: sqlite3.Connection, _: Authority) -> int:
    index, identity = db.execute(
        "SELECT log_index, submission_id FROM measurement ORDER BY log_index LIMIT 1 OFFSET 1"
    ).fetchone()
    db.execute("DELETE FROM measurement WHERE submission_id = ?", (identity,))
    db.execute("DELETE FROM submission WHERE id = ?", (identity,))
    return int(index)


def _drop_entry(db: sqlite3.Connection, _: Authority) -> int:
    db.execute("DELETE FROM log_entry WHERE log_index = 7")
    return 7


def _swap_entries(db: sqlite3.Connection, _: Authority) -> int:
    for old, new in ((7, -1), (8, 7), (-1, 8)):
        db.execute("UPDATE log_entry SET log_index = ? WHERE log_index = ?", (new, old))
    return 7


def _swap_and_rebuild(db: sqlite3.Connection, authority: Authority) -> int:
    """Reorder, and make the stored tree agree: only the signed checkpoints still tell."""
    _swap_entries(db, authority)
    frontier = merkle.Frontier()
    db.execute("DELETE FROM log_node")
    for (commitment,) in db.execute(
        "SELECT commitment FROM log_entry ORDER BY log_index"
    ).fetchall():
        for (level, position), value in frontier.add(merkle.leaf_hash(commitment)):
            db.execute("INSERT INTO log_node VALUES (?, ?, ?)", (level, position, value))
    return 7


def _other_checkpoint(db: sqlite3.Connection, authority: Authority) -> int:
    """Two checkpoints of one size: the log's own key signs another root."""
    other = Checkpoint(authority.origin, 8, bytes(32)).signed(authority.log)
    db.execute("UPDATE log_checkpoint SET note = ? WHERE size = 8", (other,))
    return 7


def _edit_figure(db: sqlite3.Connection, _: Authority) -> None:
    db.execute("UPDATE aggregate SET ns_per_sample = ns_per_sample / 2")


def _edit_level(db: sqlite3.Connection, _: Authority) -> None:
    db.execute("UPDATE aggregate SET trust_level = 4")


def _edit_result(db: sqlite3.Connection, _: Authority) -> int:
    index, identity = db.execute(
        "SELECT log_index, submission_id FROM measurement ORDER BY log_index LIMIT 1"
    ).fetchone()
    db.execute("UPDATE measurement SET trust_level = 4 WHERE submission_id = ?", (identity,))
    return int(index)


def _unrevoke(db: sqlite3.Connection, _: Authority) -> None:
    """Forget a revocation, and project what its key's results are then."""
    db.execute("UPDATE signing_key SET status = 'active', compromised_since = NULL")
    events = db.execute("SELECT log_index, envelope FROM log_entry WHERE kind = 'key_event'")
    entries = [KeyEventEntry(*row) for row in events.fetchall()]
    db.commit()
    (_, _, path) = db.execute("PRAGMA database_list").fetchone()
    store = Store(f"sqlite:///{path}")
    with store.writing() as session:
        apply_entries(session.connection(), entries)
    store.close()


DROPPED, EDITED = "dropped: ", "edited: the envelope shown is not the one the log committed to"
OTHER_ENTRY = "the entry is not the one whose hash is in the tree"
OTHER_TREE = "the tree up to this entry is not the one that the log signed"
# Each with what the audit says of it.
TAMPERING: tuple[tuple[str, Tamper, str], ...] = (
    ("a payload edited in the database", _edit_payload, EDITED),
    ("a result dropped from the database", _drop_row, DROPPED),
    ("an entry dropped from the log", _drop_entry, DROPPED),
    ("two entries in each other's place", _swap_entries, OTHER_ENTRY),
    ("the same, and the tree made to agree", _swap_and_rebuild, OTHER_TREE),
    ("another checkpoint of the same size", _other_checkpoint, OTHER_TREE),
    ("a figure edited on the leaderboard", _edit_figure, " samples/s shown, "),
    ("a trust level edited on the leaderboard", _edit_level, "trust level 4 shown, 2 follows"),
    (
        "a trust level edited of a result",
        _edit_result,
        "trust level 4, ranked, shown, trust level 2",
    ),
    ("a revoked key made to count again", _unrevoke, "owners 3 shown, 2 follows"),
)


def tampering(database: Path, keys: Path, scratch: Path) -> Iterator[Line]:
    """Tamper with a copy of the database in each way, and let verify-log look at it."""
    authority = load_authority(ORIGIN, keys)
    faults = _faults(database, authority)
    yield Line("none: the database as it is", f"{len(faults)} faults", not faults)
    for number, (attack, tamper, says) in enumerate(TAMPERING):
        copy = scratch / f"{number}.db"
        shutil.copy(database, copy)
        with sqlite3.connect(copy) as db:
            wanted = tamper(db, authority)
        db.close()
        faults = _faults(copy, authority)
        named = [f for f in faults if f.log_index == wanted and says in f.detail]
        said = named or faults
        place = "" if not said or said[0].log_index is None else f"entry {said[0].log_index}: "
        yield Line(attack, f"{place}{said[0].detail}" if said else "not found", bool(named))


def _faults(database: Path, authority: Authority) -> tuple[Fault, ...]:
    store = Store(f"sqlite:///{database}")
    with store.reading() as session:
        faults = audit(fetch_from(session, authority, "none")).faults
    store.close()
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="make audit", description=__doc__)
    parser.add_argument("--only", choices=GROUPS, action="append", help="this group; repeatable")
    groups: list[str] = parser.parse_args().only or [*GROUPS]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="trainmark-audit-") as folder:
        scratch = Path(folder)
        database = scratch / "server.db"
        lines += _shown("what a stranger sends", _live(database, scratch))
        keys = scratch / "server-keys"
        lines += _shown("tampering with the database", tampering(database, keys, scratch))
        for name in groups:
            own = scratch / name
            own.mkdir()
            lines += _shown(name, GROUPS[name](own))
    missed = sum(not line.found for line in lines)
    open_ones = sum(not line.defended for line in lines)
    print(f"\n{len(lines) - missed} of {len(lines)} as they must be, {open_ones} not defended")
    return 1 if missed else 0


def _shown(part: str, lines: Iterable[Line]) -> list[Line]:
    """Print a part of the table, each line as it comes."""
    print(f"{part}:", flush=True)
    shown = []
    for line in lines:
        word = "MISSED" if not line.found else "found " if line.defended else "open  "
        print(f"{word}  {line.attack:{WIDTH}}  {line.outcome}", flush=True)
        shown.append(line)
    return shown


def _live(database: Path, scratch: Path) -> list[Line]:
    """Attacks on a running server, and its log as it is after them."""
    engine = open_engine(f"sqlite:///{database}")
    migrate.migrate(engine)
    engine.dispose()
    lines: list[Line] = []
    with running_server(f"sqlite:///{database}", scratch) as address:
        store = Store(f"sqlite:///{database}")
        with httpx.Client(base_url=address, timeout=60) as http:
            for key in KEYS:
                http.post("/api/v1/keys", content=results.enrollment(key), headers=JSON)
                for step_ns in (1_000_000, 1_100_000):
                    made = results.make_result(key=key, step_ns=step_ns)
                    fresh = bind(store, made, datetime.now(UTC), ORIGIN)
                    submit(http, results.sealed(fresh, key)).raise_for_status()
            lines += live_attacks(http)
        store.close()
        report = audit(partial(get, address))
    whole = f"{report.size} entries, {report.results} results, {len(report.faults)} faults"
    lines.append(Line("none: verify-log on the server as it is", whole, not report.faults))
    lines += [Line(f.detail, "", False) for f in report.faults]
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return lines


if __name__ == "__main__":
    sys.exit(main())
