"""Witnessed runs: give a beacon, take the root of the states, draw, take the opened segments.

The server's own clock gives R0 and R1. Only states under the signed root are stored, so an upload
needs no signature of its own.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sqlmodel import Session, col, delete, func, select
from sqlmodel.sql.expression import SelectOfScalar

from bench_protocol.base import strict_json
from bench_protocol.base.errors import BadSignature, InvalidEnvelope, InvalidField
from bench_protocol.payload import acts
from bench_protocol.signing import envelope
from bench_protocol.training import speed_run
from bench_protocol.training.speed_run import SpeedRunRoot, SpeedRunStart

from ..db.store import Store
from ..db.tables import Challenge, OpenedSegment, SpeedRunRow
from ..errors import Conflict, Gone, NotFound, TooManyRequests
from . import key_registry

# From R0 until the last opened segment is here.
LASTS = timedelta(minutes=15)
KEPT = timedelta(days=1)
# Runs of a key in 24 hours whose root is here and which were not witnessed. A prover that sees the
# draw can abandon a run that it would refute, and try again.
UNPROVEN = 2
# Runs whose opened segments may be stored at once: about 14 MB each at eight openings.
MOST_AT_ONCE = 32
RETRY_SECONDS = 60
Said = TypeVar("Said", SpeedRunStart, SpeedRunRoot)


@dataclass(frozen=True)
class Begun:
    """A beacon, at R0. ``draw_sha256``: of what the openings will be drawn from."""

    id: str
    beacon: str
    draw_sha256: str
    begun_at: datetime
    expires_at: datetime


@dataclass(frozen=True)
class Committed:
    """The root is stored, at R1: the draw, and the segments to upload. ``samples_per_second``: by
    the server's clock, not judged yet."""

    id: str
    draw: str
    segments_to_open: tuple[int, ...]
    committed_at: datetime
    samples_per_second: int


@dataclass(frozen=True)
class Stored:
    """An opened segment is stored. ``missing``: the number of segments that are not."""

    id: str
    missing: int


def begin(raw: bytes, store: Store, origin: str, now: datetime, a_day: int) -> Begun:
    """Begin the witnessed run of a challenge: give a beacon. Again: the same one.

    Args:
        now: R0; before the beacon is drawn.
        a_day: witnessed runs that a key and those of its rotations may begin in 24 hours.

    Raises:
        ProtocolError: one of its kinds, naming what is wrong.
        TooManyRequests: the key has begun its runs, ``UNPROVEN`` of them were not witnessed, or too
            many runs are stored.
    """
    with store.writing() as session:
        start = _signed(session, raw, speed_run.START_PAYLOAD_TYPE, SpeedRunStart, origin)
        chain = key_registry.lock_rotations(session, start.key_id)
        row = session.get(SpeedRunRow, start.challenge)
        if row is None:
            _require_fresh(session, start, now)
            _clean(session, now)
            _require_room(session, chain, now, a_day)
            _require_proven(session, chain, now)
            row = SpeedRunRow(
                challenge_id=start.challenge,
                key_id=start.key_id,
                nonce=start.nonce,
                beacon=secrets.token_hex(32),
                draw=secrets.token_hex(32),
                begun_at=now,
                expires_at=now + LASTS,
            )
            session.add(row)
        elif (row.key_id, row.nonce) != (start.key_id, start.nonce):
            raise InvalidField("the challenge is another key's", field="challenge")
    draw_sha256 = speed_run.commitment_of(row.draw)
    return Begun(row.challenge_id, row.beacon, draw_sha256, row.begun_at, row.expires_at)


def commit(raw: bytes, store: Store, origin: str, now: datetime, openings: int) -> Committed:
    """Store the root of a run's states and reveal what is opened. Again: the same answer.

    Args:
        now: R1; after the whole body was read.
        openings: how many segments to draw.

    Raises:
        ProtocolError: one of its kinds, naming what is wrong.
        Conflict: the run has another root.
        TooManyRequests: ``UNPROVEN`` runs of the key were not witnessed.
    """
    with store.writing() as session:
        said = _signed(session, raw, speed_run.ROOT_PAYLOAD_TYPE, SpeedRunRoot, origin)
        chain = key_registry.lock_rotations(session, said.key_id)
        row = _run(session, said.challenge, lock=True)
        if (row.key_id, row.beacon) != (said.key_id, said.beacon):
            raise InvalidField("the beacon is not this run's", field="beacon")
        if row.root is None:
            _require_open(row, now)
            _require_proven(session, chain, now)
            opened = speed_run.drawn(said.root, row.draw, said.segments, openings)
            row.root, row.segments, row.committed_at = said.root, said.segments, now
            row.commitment = acts.payload(said).decode()
            row.opened = strict_json.dumps(list(opened)).decode()
            session.add(row)
        elif row.commitment != acts.payload(said).decode():
            raise Conflict(
                "this run has another root; a challenge has one",
                field="root",
                hint="ask for a new challenge and begin again",
            )
    return Committed(
        id=row.challenge_id,
        draw=row.draw,
        segments_to_open=to_open(row),
        committed_at=row.committed_at or now,
        samples_per_second=speed_run.samples_per_second(
            row.segments or 0, row.begun_at, row.committed_at or now
        ),
    )


def put(run_id: str, segment: int, body: bytes, store: Store, now: datetime) -> Stored:
    """Store an opened segment. Again: nothing changes.

    Raises:
        NotFound, Gone: there is no such run, or it has expired.
        Conflict: the segment is not opened.
        InvalidField, InvalidProof: the body is not what the root commits to.
    """
    with store.writing() as session:
        row = _run(session, run_id, lock=True)
        wanted = to_open(row)
        if segment not in wanted or row.root is None or row.segments is None:
            raise Conflict(
                f"segment {segment} is not opened",
                field="segment",
                hint="segments_to_open in the answer to the root lists them",
            )
        speed_run.read_opened(body, segment, row.segments, bytes.fromhex(row.root))
        if row.complete:
            return Stored(run_id, 0)
        _require_open(row, now)
        if session.get(OpenedSegment, (run_id, segment)) is None:
            session.add(OpenedSegment(challenge_id=run_id, segment=segment, body=body))
            session.flush()
        missing = len(wanted) - len(bodies(session, run_id))
        row.complete = missing == 0
        session.add(row)
    return Stored(run_id, missing)


def to_open(row: SpeedRunRow) -> tuple[int, ...]:
    """The opened segments of a run; none before its root is here."""
    return tuple(strict_json.loads(row.opened.encode())) if row.opened else ()


def bodies(session: Session, run_id: str) -> dict[int, bytes]:
    """The stored bodies of a run by their segments."""
    query = select(OpenedSegment).where(OpenedSegment.challenge_id == run_id)
    return {row.segment: row.body for row in session.exec(query)}


def run_with_id(session: Session, run_id: str) -> SpeedRunRow:
    """A run that ended less than a day ago, or has not ended.

    Raises:
        NotFound: there is none.
    """
    return _run(session, run_id)


def _run(session: Session, run_id: str, *, lock: bool = False) -> SpeedRunRow:
    row = session.get(SpeedRunRow, run_id, with_for_update=lock)
    if row is None:
        raise NotFound(
            f"no witnessed run {run_id}",
            field="challenge",
            hint="POST /api/v1/speed-runs begins one; a day after its end it is forgotten",
        )
    return row


def _require_open(row: SpeedRunRow, now: datetime) -> None:
    if now > row.expires_at:
        raise Gone(
            f"the witnessed run expired at {row.expires_at.isoformat()}",
            field="challenge",
            hint="ask for a new challenge and begin again",
        )


def _require_fresh(session: Session, start: SpeedRunStart, now: datetime) -> None:
    challenge = session.get(Challenge, start.challenge)
    named = (start.key_id, start.nonce)
    if challenge is None or (challenge.key_id, challenge.nonce) != named:
        raise InvalidField(
            "this server gave this key no such challenge",
            field="challenge",
            hint="POST /api/v1/challenges gives one",
        )
    if now > challenge.expires_at:
        raise InvalidField("the challenge has expired", field="challenge")


def _require_room(session: Session, chain: Sequence[str], now: datetime, a_day: int) -> None:
    if session.exec(_begun(chain, now)).one() >= a_day:
        raise TooManyRequests("a key may begin", f"{a_day} witnessed runs a day", 3600)
    unjudged = select(func.count()).where(
        col(SpeedRunRow.outcome).is_(None),
        col(SpeedRunRow.complete) | (col(SpeedRunRow.expires_at) >= now),
    )
    if session.exec(unjudged).one() >= MOST_AT_ONCE:
        raise TooManyRequests(
            "this server holds", f"{MOST_AT_ONCE} witnessed runs at a time", RETRY_SECONDS
        )


def _require_proven(session: Session, chain: Sequence[str], now: datetime) -> None:
    unproven = _begun(chain, now).where(
        col(SpeedRunRow.root).is_not(None),
        col(SpeedRunRow.complete).is_(False) | (col(SpeedRunRow.outcome) == "refuted"),
    )
    if session.exec(unproven).one() >= UNPROVEN:
        raise TooManyRequests(
            "a key may have", f"{UNPROVEN} witnessed runs a day that are not proven", 3600
        )


def _begun(chain: Sequence[str], now: datetime) -> SelectOfScalar[int]:
    """Number of runs that keys have begun in 24 hours."""
    return select(func.count()).where(
        col(SpeedRunRow.key_id).in_(chain), col(SpeedRunRow.begun_at) > now - KEPT
    )


def _clean(session: Session, now: datetime) -> None:
    """Delete runs that ended or expired, with their segments, and those of a day ago for good."""
    expired = (
        select(SpeedRunRow.challenge_id)
        .where(col(SpeedRunRow.expires_at) < now, col(SpeedRunRow.complete).is_(False))
        .scalar_subquery()
    )
    session.exec(delete(OpenedSegment).where(col(OpenedSegment.challenge_id).in_(expired)))
    session.exec(
        delete(SpeedRunRow).where(
            col(SpeedRunRow.begun_at) < now - KEPT,
            col(SpeedRunRow.complete).is_(False) | col(SpeedRunRow.outcome).is_not(None),
        )
    )


def _signed(session: Session, raw: bytes, payload_type: str, kind: type[Said], origin: str) -> Said:
    """Open what an active key signed for this server."""
    opened = envelope.read(raw)
    if len(opened.signatures) != 1:
        raise InvalidEnvelope("a witnessed run has exactly one signature", field="signatures")
    payload = envelope.open_envelope(opened, payload_type, key_registry.find_key(session))
    said = acts.parse(kind, payload)
    signer = opened.signatures[0].key_id
    if said.key_id != signer:
        raise BadSignature(f"it names key {said.key_id}, but {signer} signed it", field="key_id")
    if said.server_origin != origin:
        raise InvalidField(
            f"it is for {said.server_origin}, this server is {origin}", field="server_origin"
        )
    key_registry.require_active(session, signer)
    return said
