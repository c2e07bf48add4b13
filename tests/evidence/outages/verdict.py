"""What became of every result after a fault: agents' receipts, database, log and boards agree."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select
from tests.fakes.integrity import contradictions, doubled, lost
from tests.fakes.projected import project

from bench_server.db.store import Store
from bench_server.db.tables import LogEntry, RecomputeJob
from bench_server.log.server_keys import Authority, load_authority
from bench_server.projection import position
from bench_server.recompute import jobs
from bench_server.settings import DEFAULT_ORIGIN as ORIGIN

from .agents import Agent

SETTLE_SECONDS = 60.0


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
        """A fault without an acknowledged result proves nothing, so it counts as wrong."""
        failed = self.lost or self.doubled or self.left or self.wrong
        return self.acknowledged > 0 and not failed


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
        sent = [(e.raw, e.answer or {}) for agent in agents for e in agent.outbox.sent()]
        return Verdict(
            len(sent),
            lost(store, authority, sent),
            doubled(store),
            sum(len([*a.outbox.pending(), *a.outbox.refused()]) for a in agents),
            (
                *([f"the projector left {behind} entries"] if behind else []),
                *_wrong(store, authority, agents),
            ),
        )
    finally:
        store.close()


def _wrong(store: Store, authority: Authority, agents: Sequence[Agent]) -> Iterator[str]:
    yield from (agent.contradiction for agent in agents if agent.contradiction)
    for agent in agents:
        outbox = agent.outbox
        held = len([*outbox.pending(), *outbox.sent(), *outbox.refused()])
        if held != agent.measured:
            yield f"{agent.name} measured {agent.measured} results and has {held}"
    with store.reading() as session:
        unsettled = jobs.pending(session)
        settled = session.scalar(select(func.count()).select_from(RecomputeJob)) or 0
        stated = session.scalar(
            select(func.count()).select_from(LogEntry).where(LogEntry.kind == "recomputation")  # type: ignore[arg-type]
        )
    if unsettled or settled != stated:
        yield f"{settled} jobs, {unsettled} not recomputed, {stated} recomputed"
    yield from contradictions(store, authority)
