"""Fresh owners: many keys of one person, beside older owners and alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fakes import results
from tests.fakes.crowds import bounds, crowd

from bench_server.ranking.owners import ESTABLISHED_AFTER

from . import Line
from .scene import Scene
from .scene import scene as scene_of

HONEST_NS = 10_000_000
# By how much two honest owners differ.
APART = 0.01
# Within twice the honest speed, so that no outlier check holds it.
FAST_NS = 6_000_000
OLD = tuple(results.private_key(seed) for seed in (1, 2))
# The seeds of 20 fresh owners, and of 80 more.
CROWDS = {20: range(100, 120), 100: range(120, 200)}


def fresh_owners(folder: Path) -> Iterator[Line]:
    """Crowds beside confirmed owners, beside an established one, and beside fresh ones."""
    with scene_of(f"sqlite:///{folder / 'confirmed.db'}") as scene:
        scene.enroll(*OLD)
        for key in OLD:
            scene.measure(key, HONEST_NS)
        scene.confirm(*OLD)
        yield from _beside(scene, "two confirmed owners")
    with scene_of(f"sqlite:///{folder / 'established.db'}") as scene:
        scene.enroll(OLD[0])
        scene.measure(OLD[0], HONEST_NS)
        scene.now += ESTABLISHED_AFTER
        scene.measure(OLD[0], HONEST_NS)
        yield from _beside(scene, "an established one")
    with scene_of(f"sqlite:///{folder / 'fresh.db'}") as scene:
        for number, key in enumerate(OLD):
            # The server believes the proxy on its own machine.
            scene.http.headers["X-Forwarded-For"] = f"198.51.100.{number}"
            scene.enroll(key)
            scene.measure(key, round(HONEST_NS * (1 + number * APART)))
        yield _alone(scene)


def _beside(scene: Scene, older: str) -> Iterator[Line]:
    """A crowd of 20, then of 100: place, median and outlier bound stay."""
    before = _figure(scene), bounds(scene.store)
    for count, seeds in CROWDS.items():
        crowd(scene.http, scene.store, seeds, FAST_NS, scene.now)
        after = _figure(scene), bounds(scene.store)
        rank, rate = after[0]["rank"], after[0]["samples_per_second"]
        moved = [name for name in before[0] if before[0][name] != after[0][name]]
        moved += ["outlier bound"] if before[1] != after[1] else []
        said = f"moves {', '.join(moved)}" if moved else "no place, median or outlier bound moves"
        first = _first(scene)
        yield Line(
            f"{count} fresh owners of one address beside {older}",
            f"place {rank}, {rate:,.0f} samples/s: {said}",
            not moved and first["new_owners"] == count,
        )


def _alone(scene: Scene) -> Line:
    """Where everybody is new, a crowd counts as one value of the median."""
    before = _figure(scene)["samples_per_second"]
    scene.http.headers["X-Forwarded-For"] = "192.0.2.1"
    crowd(scene.http, scene.store, CROWDS[20], FAST_NS, scene.now)
    row = _first(scene)
    after, counted, backing = (row[name] for name in ("samples_per_second", "n", "backing"))
    return Line(
        "20 fresh owners of one address beside two fresh ones of two others",
        f"{before:,.0f} samples/s become {after:,.0f}; of {row['owners']} owners {counted} count",
        (counted, backing) == (3, "several") and 0 <= after / before - 1 <= 1.001 * APART,
    )


def _figure(scene: Scene) -> dict[str, Any]:
    """The place and the median of the first ranked row."""
    row = _first(scene)
    return {name: row[name] for name in ("rank", "result_id", "samples_per_second", "backing")}


def _first(scene: Scene) -> dict[str, Any]:
    return next(row for row in scene.board() if row["rank"] == 1)
