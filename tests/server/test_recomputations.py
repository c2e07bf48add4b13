"""The server's recomputations: a reader and an audit check what they say."""

import base64
import json
from collections.abc import Callable
from copy import deepcopy
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
from tests.server.test_recompute import NOW, recomputations, worker

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

Bundle = dict[str, Any]


def sealed(said: Recomputation, key: Ed25519PrivateKey = AUTHORITY.challenge) -> bytes:
    return envelope.seal(RECOMPUTATION_PAYLOAD_TYPE, recomputation.payload(said), key)


def log(store: Store, raw: bytes) -> None:
    """Log a recomputation as a server with the log's key can."""
    with store.writing_in_turn() as session:
        writer.take_turn(session)
        leaf = writer.Leaf("recomputation", envelope.read(raw))
        writer.append(session, AUTHORITY, [leaf], NOW)


# -- what a reader checks of one result -----------------------------------------------------------


@pytest.fixture
def bundles(post: Poster, store: Store) -> Callable[[], Bundle]:
    """Makes results of trust level 3, and fetches the bundle of each."""

    def read(path: str) -> dict[str, Any]:
        answer = post.http.get(path)
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document

    def made() -> Bundle:
        (identity,) = trusted.send(store, results.private_key(), [1_000_000])
        return fetch_bundle(identity, read)

    return made


def judged(bundle: Bundle) -> Verified:
    """Verified as a file is: written and read again."""
    return verify(json.loads(json.dumps(bundle)))


def test_the_recomputations_of_a_result_are_verified_offline(bundles: Callable[[], Bundle]) -> None:
    bundle = bundles()
    assert bundle["judged"]["trust_level"] == 3
    verified = judged(bundle)
    assert len(verified.stated) == 1
    assert "of this result (log entry 2)" in verified.sentences[-1]


def flipped(bundle: Bundle) -> None:
    """One byte of a signed recomputation."""
    document = bundle[RECOMPUTATIONS]["recomputations"][0]
    payload = bytearray(base64.b64decode(document["payload"]))
    payload[payload.index(b'"loss":') + 9] ^= 1
    document["payload"] = base64.b64encode(payload).decode()


def signed_by_another(bundle: Bundle) -> None:
    """The same recomputation under a key of somebody else."""
    document = bundle[RECOMPUTATIONS]["recomputations"][0]
    payload = base64.b64decode(document["payload"])
    raw = envelope.seal(RECOMPUTATION_PAYLOAD_TYPE, payload, results.private_key(7))
    bundle[RECOMPUTATIONS]["recomputations"][0] = json.loads(raw)


def never_logged(bundle: Bundle) -> None:
    """The server signed other figures, and the log has the first ones."""
    document = bundle[RECOMPUTATIONS]["recomputations"][0]
    said = recomputation.parse(base64.b64decode(document["payload"]))
    assert said.figures is not None
    figures = said.figures.model_copy(update={"start_loss": 2.0})
    other = sealed(said.model_copy(update={"figures": figures}))
    bundle[RECOMPUTATIONS]["recomputations"][0] = json.loads(other)


def another_receipt(bundle: Bundle) -> None:
    """That of the result itself."""
    bundle[RECOMPUTATIONS]["receipts"] = [bundle["receipt"]]


def all_left_out(bundle: Bundle) -> None:
    del bundle[RECOMPUTATIONS]


def malformed(bundle: Bundle) -> None:
    bundle[RECOMPUTATIONS]["receipts"] = 7


# Each with the error that it is, and what that says.
CHANGES: tuple[tuple[Callable[[Bundle], None], type[ProtocolError], str], ...] = (
    (flipped, BadSignature, "signature"),
    (signed_by_another, BadSignature, "signature"),
    (never_logged, InvalidProof, "root"),
    (another_receipt, InvalidProof, "root"),
    (all_left_out, InvalidProof, "nothing about"),
    (malformed, BadSignature, "recomputations are malformed"),
)


def test_a_changed_recomputation_does_not_hold(bundles: Callable[[], Bundle]) -> None:
    honest = bundles()
    judged(honest)
    for change, error, says in CHANGES:
        bundle = deepcopy(honest)
        change(bundle)
        with pytest.raises(error) as caught:
            judged(bundle)
        assert says in str(caught.value), change


def test_recomputations_of_another_result_do_not_hold(bundles: Callable[[], Bundle]) -> None:
    one, other = bundles(), bundles()
    with pytest.raises(InvalidField, match="another challenge"):
        judged(one | {RECOMPUTATIONS: other[RECOMPUTATIONS]})


def other_start(workload: Workload, nonce: str, batch_size: int) -> Figures:
    made = invented(workload, nonce, batch_size)
    return made.model_copy(update={"start_loss": 2 * made.start_loss})


def other_reading(workload: Workload, nonce: str, batch_size: int) -> Figures:
    made = invented(workload, nonce, batch_size)
    last = made.readings[-1]
    doubled = last.model_copy(update={"movements": tuple(2 * one for one in last.movements)})
    return made.model_copy(update={"readings": (*made.readings[:-1], doubled)})


@pytest.mark.parametrize("compute", [other_start, other_reading])
def test_a_level_that_does_not_follow_from_the_recomputations(
    post: Poster, store: Store, compute: Compute
) -> None:
    """The server recomputed other figures, and shows level 3 all the same."""
    (identity,) = trusted.send(store, results.private_key(), [1_000_000], projected=False)
    settle(store, compute)
    bundle = fetch_bundle(identity, lambda path: dict(post.http.get(path).json()))
    assert bundle["judged"]["trust_level"] == 2
    judged(bundle)
    bundle["judged"]["trust_level"] = 3
    with pytest.raises(InvalidProof, match="does not give it"):
        judged(bundle)


# -- what the audit checks of the whole log -------------------------------------------------------


def test_an_audit_accepts_what_an_honest_server_states(post: Poster, store: Store) -> None:
    """Also where the budget of a key is spent: then some jobs are left out by their draw."""
    for _ in range(24):
        trusted.send(store, results.private_key(), [1_000_000], projected=False)
    project(store)
    assert worker(store, budget_seconds=0.0).drain() == 24
    project(store)
    assert "not_drawn" in {said.verdict for said in recomputations(store)}
    assert audited(store).faults == ()


NONCE = "0f" * 32
# The log: an enrollment, then the result. So its first checkpoint is that of two entries.
RIGHT_SIZE = 2


def waiting(store: Store) -> Recomputation:
    """What an honest server could state about a job of a result that waits."""
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


def elsewhere(said: Recomputation) -> Recomputation:
    return said.model_copy(update={"server_origin": "elsewhere"})


def of_another_nonce(said: Recomputation) -> Recomputation:
    """It follows from a nonce that the server never gave for this challenge."""
    seed = nonces.seed_of(NONCE, said.workload_digest)
    return said.model_copy(update={"nonce": NONCE, "seed": seed})


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
        (elsewhere, "a recomputation of another server"),
        (of_another_nonce, "not that of its challenge"),
        (partial(left_out, size=RIGHT_SIZE), "by another root than its checkpoint has"),
        (partial(left_out, size=RIGHT_SIZE - 1), "by the checkpoint of 1 entries, not of 2"),
        (partial(left_out, size=RIGHT_SIZE + 1), "by the checkpoint of 3 entries, not of 2"),
    ],
)
def test_an_audit_finds_a_false_recomputation(
    post: Poster, store: Store, forge: Callable[[Recomputation], Recomputation], says: str | None
) -> None:
    """Each is signed by the server's own keys."""
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
    assert fault.log_index == 2
    assert "it should not be there" in fault.detail


# -- what the boards show beside the speed --------------------------------------------------------


FIELDS = ("trust_level", "owners", "confirmed_owners", "machines", "runs", "repeats")


def test_an_audit_compares_more_of_a_board_than_its_speed(post: Poster, store: Store) -> None:
    trusted.send(store, results.private_key(), [1_000_000])
    with store.reading() as session:
        honest = fetch_from(session, AUTHORITY, "none")

        def edited(path: str, field: str) -> bytes:
            answer = honest(path)
            if not path.startswith("/api/v1/leaderboard"):
                return answer
            document = json.loads(answer)
            for row in document["rows"]:
                row[field] += 1
            return json.dumps(document).encode()

        assert audit(honest).faults == ()
        for field in FIELDS:
            (fault,) = audit(partial(edited, field=field)).faults
            assert f"{field.replace('_', ' ')} " in fault.detail
            assert "follows from the log" in fault.detail


def test_an_audit_finds_a_false_level_of_a_result(post: Poster, store: Store) -> None:
    """Level 4 without other owners, and a result that is not ranked for no reason."""
    trusted.send(store, results.private_key(), [1_000_000])
    with store.reading() as session:
        honest = fetch_from(session, AUTHORITY, "none")

        def edited(path: str, change: dict[str, Any]) -> bytes:
            answer = honest(path)
            if not path.startswith("/api/v1/log/entries"):
                return answer
            document = json.loads(answer)
            document["records"][1].update(change)
            return json.dumps(document).encode()

        assert audit(honest).levels == 1
        for change in ({"trust_level": 4}, {"ranked": False}):
            (fault,) = audit(partial(edited, change=change)).faults
            assert fault.log_index == 1
            assert fault.detail.endswith("trust level 3, ranked, follows from the log")
