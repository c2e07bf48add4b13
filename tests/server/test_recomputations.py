"""The server's recomputations: a reader and an audit check what they say."""

import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlmodel import select
from tests.fakes import results, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.integrity import audited
from tests.fakes.projected import project, settle
from tests.fakes.seeding import invented
from tests.server.test_recompute import NOW

from bench_agent.remote.verify import RECOMPUTATIONS, Verified, fetch_bundle, verify
from bench_protocol.base.errors import BadSignature, InvalidField, InvalidProof, ProtocolError
from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.signing import envelope
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import RECOMPUTATION_PAYLOAD_TYPE, Draw, Recomputation
from bench_protocol.training.recomputed import Figures
from bench_server.answers.log_entries import fetch_from
from bench_server.audit.verify import audit
from bench_server.db.store import Store
from bench_server.db.tables import RecomputeJob
from bench_server.log import writer
from bench_server.recompute.worker import Compute

pytestmark = pytest.mark.sqlite
Bundle = dict[str, Any]


def sealed(said: Recomputation, key: Ed25519PrivateKey = AUTHORITY.challenge) -> bytes:
    return envelope.seal(RECOMPUTATION_PAYLOAD_TYPE, recomputation.payload(said), key)


def log(store: Store, raw: bytes) -> None:
    with store.writing_in_turn() as session:
        writer.take_turn(session)
        writer.append(session, AUTHORITY, [writer.Leaf("recomputation", envelope.read(raw))], NOW)


def bundle_of(post: Poster, store: Store, compute: Compute = invented) -> Bundle:
    (identity,) = trusted.send(store, results.private_key(), [1_000_000], projected=False)
    settle(store, compute)
    return fetch_bundle(identity, lambda path: dict(post.http.get(path).json()))


def judged(bundle: Bundle) -> Verified:
    return verify(json.loads(json.dumps(bundle)))


def test_a_changed_recomputation_does_not_hold_offline(post: Poster, store: Store) -> None:
    bundle = bundle_of(post, store)
    assert bundle["judged"]["trust_level"] == 3
    verified = judged(bundle)
    assert len(verified.stated) == 1
    assert "of this result (log entry 2)" in verified.sentences[-1]
    stated = bundle.pop(RECOMPUTATIONS)
    (honest,) = stated["recomputations"]
    payload = base64.b64decode(honest["payload"])
    said = recomputation.parse(payload)
    assert said.figures is not None
    figures = said.figures.model_copy(update={"start_loss": 2.0})
    flipped = bytearray(payload)
    flipped[payload.index(b'"loss":') + 9] ^= 1
    one_byte = honest | {"payload": base64.b64encode(flipped).decode()}
    by_another = json.loads(sealed(said, results.private_key(7)))
    never_logged = json.loads(sealed(said.model_copy(update={"figures": figures})))
    error: type[ProtocolError]
    for changes, error, says in (
        ({"recomputations": [one_byte]}, BadSignature, "signature"),
        ({"recomputations": [by_another]}, BadSignature, "signature"),
        ({"recomputations": [never_logged]}, InvalidProof, "root"),
        ({"receipts": [bundle["receipt"]]}, InvalidProof, "root"),
        ({"receipts": 7}, BadSignature, "recomputations are malformed"),
    ):
        with pytest.raises(error, match=says):
            judged(bundle | {RECOMPUTATIONS: stated | changes})
    with pytest.raises(InvalidProof, match="nothing about"):
        judged(bundle)


# Each with the error that it is, and what that says.
def test_recomputations_of_another_result_do_not_hold(post: Poster, store: Store) -> None:
    one, other = bundle_of(post, store), bundle_of(post, store)
    with pytest.raises(InvalidField, match="another challenge"):
        judged(one | {RECOMPUTATIONS: other[RECOMPUTATIONS]})


def off(workload: Workload, nonce: str, batch_size: int, start: float, last: float) -> Figures:
    made = invented(workload, nonce, batch_size)
    *others, reading = made.readings
    moved = reading.model_copy(update={"movements": tuple(last * one for one in reading.movements)})
    changes = {"start_loss": start * made.start_loss, "readings": (*others, moved)}
    return made.model_copy(update=changes)


@pytest.mark.parametrize(("start", "last"), [(2, 1), (1, 2)])
def test_a_level_that_does_not_follow_from_the_recomputations(
    post: Poster, store: Store, start: float, last: float
) -> None:
    """The server recomputed other figures, and shows level 3 all the same."""
    bundle = bundle_of(post, store, partial(off, start=start, last=last))
    assert bundle["judged"]["trust_level"] == 2
    judged(bundle)
    bundle["judged"]["trust_level"] = 3
    with pytest.raises(InvalidProof, match="does not give it"):
        judged(bundle)


# A nonce that the server never gave.
NONCE = "0f" * 32
# The log: an enrollment, then the result. So its first checkpoint is that of two entries.
RIGHT_SIZE = 2


def waiting(store: Store) -> Recomputation:
    with store.reading() as session:
        row = session.exec(select(RecomputeJob)).one()
    said = Recomputation(
        challenge=row.challenge_id,
        nonce=row.nonce,
        workload=row.workload,
        workload_digest=row.workload_digest,
        batch_size=row.batch_size,
        seed=row.seed,
        server_origin=AUTHORITY.origin,
        verdict="computed",
        figures=invented(workload_named(row.workload), row.nonce, row.batch_size),
        data="generated",
        data_digest="e" * 64,
    )
    return recomputation.parse(recomputation.payload(said))


def changed(said: Recomputation, **changes: str) -> Recomputation:
    seed = nonces.seed_of(changes.get("nonce", said.nonce), said.workload_digest)
    return said.model_copy(update={"seed": seed} | changes)


def left_out(said: Recomputation, size: int) -> Recomputation:
    """It is left out by a root that somebody chose."""
    seed = nonces.seed_of(said.nonce, said.workload_digest)
    chosen = (
        Draw(size=size, root=f"{number:064x}", seed=seed, share=recomputation.DRAWN_SHARE)
        for number in range(1_000)
    )
    draw = next(one for one in chosen if not recomputation.is_drawn(one))
    changes = {"verdict": "not_drawn", "figures": None, "data_digest": None, "draw": draw}
    return said.model_copy(update=changes)


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        (lambda said: said, None),
        (partial(changed, server_origin="elsewhere"), "a recomputation of another server"),
        (partial(changed, nonce=NONCE), "not that of its challenge"),
        (partial(left_out, size=RIGHT_SIZE), "by another root than its checkpoint has"),
        (partial(left_out, size=RIGHT_SIZE - 1), "by the checkpoint of 1 entries, not of 2"),
        (partial(left_out, size=RIGHT_SIZE + 1), "by the checkpoint of 3 entries, not of 2"),
    ],
)
def test_an_audit_finds_a_false_recomputation(
    post: Poster, store: Store, forge: Callable[[Recomputation], Recomputation], says: str | None
) -> None:
    """Each is signed by the server's own key."""
    trusted.send(store, results.private_key(), [1_000_000], projected=False)
    project(store)
    log(store, sealed(forge(waiting(store))))
    project(store)
    faults = audited(store).faults
    assert bool(faults) is bool(says)
    # A level that rests on it is another fault.
    about = [fault.detail for fault in faults if fault.log_index == 2]
    assert [says in detail for detail in about if says] == ([True] if says else [])


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, results.private_key(7)),
        ({}, AUTHORITY.operator),
        ({"seed": "0" * 32}, AUTHORITY.challenge),
    ],
)
def test_an_audit_finds_a_recomputation_of_another_key_or_seed(
    post: Poster, store: Store, changes: dict[str, str], key: Ed25519PrivateKey
) -> None:
    trusted.send(store, results.private_key(), [1_000_000], projected=False)
    project(store)
    log(store, sealed(waiting(store).model_copy(update=changes), key))
    (fault,) = audited(store).faults
    assert (fault.log_index, "it should not be there" in fault.detail) == (2, True)


def test_an_audit_compares_more_than_speed(post: Poster, store: Store) -> None:
    """What boards show beside it, and each result's level, which needs others and a reason."""
    trusted.send(store, results.private_key(), [1_000_000])
    with store.reading() as session:
        honest = fetch_from(session, AUTHORITY, "none")

        def edited(path: str, of: str, edit: Callable[[Any], Any]) -> bytes:
            answer = honest(path)
            if not path.startswith(of):
                return answer
            edit(document := json.loads(answer))
            return json.dumps(document).encode()

        report = audit(honest)
        assert (report.faults, report.levels) == ((), 1)
        fields = (
            "trust_level",
            "owners",
            "confirmed_owners",
            "machines",
            "runs",
            "repeats",
            "held",
        )
        for field in fields:

            def more(board: Any, field: str = field) -> None:
                for row in board["rows"]:
                    row[field] += 1

            (fault,) = audit(partial(edited, of="/api/v1/leaderboard", edit=more)).faults
            assert f"{field.replace('_', ' ')} " in fault.detail
            assert "follows from the log" in fault.detail
        for change in ({"trust_level": 4}, {"ranked": False}):

            def other(page: Any, change: dict[str, Any] = change) -> None:
                page["records"][1].update(change)

            (fault,) = audit(partial(edited, of="/api/v1/log/entries", edit=other)).faults
            assert fault.log_index == 1
            assert fault.detail.endswith("trust level 3, ranked, follows from the log")
