"""What became of every result after a fault: agents' receipts, database, log and boards agree."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select
from tests.fakes.projected import project, rows

from bench_protocol import envelope, receipts
from bench_protocol.errors import ProtocolError
from bench_server.answers.log_entries import fetch_from
from bench_server.audit.verify import audit
from bench_server.db.store import Store
from bench_server.db.tables import LogEntry, RecomputeJob, Submission
from bench_server.log.server_keys import Authority, load_authority
from bench_server.projection import position, reindex
from bench_server.recompute import jobs

from .agents import Agent

SETTLE_SECONDS = 60.0
ORIGIN = "trainmark.localhost"


@dataclass(frozen=True)
class Verdict:
    """Counts of results.

    ``lost``: acknowledged, but not stored under the id and receipt of the answer. ``doubled``:
    stored more than once. ``left``: not sent, or refused. ``wrong``: where tree and rows disagree,
    a sentence each.
    """

    acknowledged: int
    lost: int
    doubled: int
    left: int
    wrong: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        return not (self.lost or self.doubled or self.left or self.wrong)


def settle(database_url: str) -> None:
    """Wait until the site's projector has applied every entry and its recomputation has stated
    every job. On a busy machine a process of the lowest priority is slow, so it ends only after
    SETTLE_SECONDS without progress. The verdict counts what is left."""
    store = Store(database_url)
    least, deadline = None, 0.0
    try:
        while True:
            with store.reading() as session:
                left = position.lag(session).entries + jobs.pending(session)
            now = time.monotonic()
            if least is None or left < least:
                least, deadline = left, now + SETTLE_SECONDS
            if not left or now > deadline:
                return
            time.sleep(0.1)
    finally:
        store.close()


def judge(database_url: str, home: Path, agents: Sequence[Agent]) -> Verdict:
    """Compare what the agents have with the database, after the site has ended."""
    store = Store(database_url)
    try:
        with store.reading() as session:
            behind = position.lag(session).entries
        project(store)
        authority = load_authority(ORIGIN, home / "server-keys")
        acknowledged, lost = _lost(store, authority, agents)
        return Verdict(
            acknowledged,
            lost,
            _doubled(store),
            sum(len([*a.outbox.pending(), *a.outbox.refused()]) for a in agents),
            (
                *([f"the projector left {behind} entries"] if behind else []),
                *_wrong(store, authority, agents),
            ),
        )
    finally:
        store.close()


def _lost(store: Store, authority: Authority, agents: Sequence[Agent]) -> tuple[int, int]:
    """Results with a receipt, and how many of them are not stored as the receipt says."""
    with store.reading() as session:
        query = select(Submission.id, Submission.payload_sha256, LogEntry.log_index)
        joined = query.join(LogEntry, LogEntry.submission_id == Submission.id)  # type: ignore[arg-type]
        stored = {row.id: (row.payload_sha256, row.log_index) for row in session.execute(joined)}
    count = lost = 0
    for agent in agents:
        for entry in agent.outbox.sent():
            count += 1
            opened, answer = envelope.read(entry.raw), entry.answer or {}
            try:
                proof = answer["receipt"]
                receipt = receipts.parse_proof(bytes.fromhex(proof["salt"]), proof["proof"])
                receipts.verify_receipt(receipt, opened, authority.log_key)
                kept = stored.get(answer["id"]) == (opened.payload_sha256, receipt.index)
            except (ProtocolError, KeyError):
                kept = False
            lost += not kept
    return count, lost


def _doubled(store: Store) -> int:
    with store.reading() as session:
        digests = Counter(session.scalars(select(Submission.payload_sha256)))
        entries = Counter(
            session.scalars(select(LogEntry.submission_id).where(LogEntry.kind == "result"))  # type: ignore[arg-type]
        )
    return sum(n - 1 for counts in (digests, entries) for n in counts.values())


def _wrong(store: Store, authority: Authority, agents: Sequence[Agent]) -> Iterator[str]:
    yield from (agent.contradiction for agent in agents if agent.contradiction)
    for agent in agents:
        outbox = agent.outbox
        held = len([*outbox.pending(), *outbox.sent(), *outbox.refused()])
        if held != agent.measured:
            yield f"{agent.name} measured {agent.measured} results and has {held}"
    with store.reading() as session:
        results = session.scalar(select(func.count()).select_from(Submission)) or 0
        unsettled = jobs.pending(session)
        settled = session.scalar(select(func.count()).select_from(RecomputeJob)) or 0
        stated = session.scalar(
            select(func.count()).select_from(LogEntry).where(LogEntry.kind == "recomputation")  # type: ignore[arg-type]
        )
    if unsettled or settled != stated:
        yield f"{settled} jobs, {unsettled} without a statement, {stated} statements"
    followed = rows(store)
    reindex.reindex(store)
    if rows(store) != followed:
        yield "a reindex gives other rows"
    with store.reading() as session:
        report = audit(fetch_from(session, authority, "CC-BY-4.0"))
    yield from (fault.detail for fault in report.faults)
    if report.results != results:
        yield f"verify-log sees {report.results} of {results} results"
