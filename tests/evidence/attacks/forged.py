"""Forged results: readings that are invented, replayed, copied or precomputed, in ways that are
counted, and what else a result can forge. The server recomputes in earnest; each must stay below
trust level 3.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.forgeries import KEY, OTHER_KEY, OTHERS, WAYS, Forgery, Scene, betrayed
from tests.fakes.trusted import BEGAN

from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.ingest import key_events
from bench_server.log import writer

from . import Line

TRUSTED = 3


def forged(folder: Path) -> Iterator[Line]:
    """Every forgery, and the honest result beside them."""
    store = Store(f"sqlite:///{folder / 'forged.db'}")
    migrate.migrate(store.engine)
    with store.writing() as session:
        writer.begin(session, AUTHORITY)
    for key in (KEY, OTHER_KEY):
        key_events.accept(results.enrollment(key), store, AUTHORITY, "open", BEGAN)
    scene = Scene(store)
    level, _ = scene.judged(scene.honest())
    yield Line("none: an honest result", f"level {level}", level == TRUSTED)
    ways = [(origin, forge) for origin, forgeries in WAYS.items() for forge in forgeries]
    for number, (origin, forge) in enumerate(ways, 1):
        yield _sent(scene, f"way {number} of {len(ways)}, {origin} readings", forge)
    for forge in OTHERS:
        yield _sent(scene, "forged", forge)
    store.close()


def _sent(scene: Scene, what: str, forge: Forgery) -> Line:
    level, verdicts = scene.judged(forge(scene))
    reasons = betrayed(forge, verdicts)
    why = f"{reasons[0].check}: {reasons[0].sentence}" if reasons else "no check betrays it"
    return Line(
        f"{what}: {forge.__name__.replace('_', ' ')}",
        f"level {level}: {why}",
        level < TRUSTED and bool(reasons),
    )
