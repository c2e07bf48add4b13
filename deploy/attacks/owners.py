"""Fresh owners: many keys of one person against owners whom the operator has confirmed."""

from collections.abc import Iterator
from pathlib import Path

from tests.fakes import results, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.projected import project

from bench_protocol import acts
from bench_server.answers import leaderboard
from bench_server.answers.filters import BoardFilters
from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.db.tables import Measurement
from bench_server.ingest import key_events, moderation
from bench_server.log import writer

from . import Line

HONEST_NS = 1_000_000
FRESH_OWNERS = 40
# Times of the fresh owners: within twice the confirmed speed, so that no outlier check holds them.
FRESH_NS = 600_000


def fresh_owners(folder: Path) -> Iterator[Line]:
    """Forty fresh keys claim a speed against two confirmed owners, and one another's level 4."""
    store = Store(f"sqlite:///{folder / 'owners.db'}")
    migrate.migrate(store.engine)
    with store.writing() as session:
        writer.begin(session, AUTHORITY)
    for number in (1, 2):
        _sends(store, number, HONEST_NS)
        owner = acts.first_owner(results.key_id(results.private_key(number)))
        moderation.decide(store, AUTHORITY, trusted.BEGAN, "confirm", owner=owner)
    project(store)
    before = _figure(store)
    sent = [_sends(store, 10 + number, FRESH_NS) for number in range(FRESH_OWNERS)]
    after = _figure(store)
    yield Line(
        f"{FRESH_OWNERS} fresh owners beside two confirmed ones",
        f"{before:,.0f} samples/s before and {after:,.0f} after: confirmed owners alone count",
        before == after,
    )
    levels = _levels(store, sent)
    yield Line(
        f"{FRESH_OWNERS} fresh owners that reproduce each other",
        f"level {max(levels)} at most: only confirmed owners reproduce",
        max(levels) < 4,
    )
    store.close()


def _sends(store: Store, number: int, step_ns: int) -> str:
    """Enroll a key and send a result that has all that level 3 needs."""
    key = results.private_key(number)
    body = results.enrollment(key)
    key_events.accept(body, store, AUTHORITY, "open", trusted.BEGAN)
    (identity,) = trusted.send(store, key, [step_ns])
    return identity


def _figure(store: Store) -> float:
    """The first figure of the board."""
    with store.reading() as session:
        filters = BoardFilters.model_validate({"workload": "mnist-cnn"})
        (board,) = leaderboard.leaderboard(session, filters).boards
    return board.rows[0].samples_per_second


def _levels(store: Store, ids: list[str]) -> list[int]:
    with store.reading() as session:
        return [session.get_one(Measurement, one).trust_level or 0 for one in ids]
