"""Bytes of each table and index, measured at some sizes, extrapolated to another: ``make
benchmark-sizes``.

A line is fitted to each table and index. The rows are those of a server that has every result
projected: whole payloads, a challenge a run, its recomputations, one checkpoint a recomputation or
result. Indexes grow row by row. What a line cannot show: rows that were changed leave dead rows
behind in PostgreSQL, until they are vacuumed.
"""

import argparse
import hashlib
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache

from sqlalchemy import text
from tests.fakes import results, seeding

from bench_protocol.base import strict_json
from bench_protocol.base.format import markdown, percent
from bench_protocol.signing import envelope
from bench_protocol.signing.receipts import Checkpoint
from bench_protocol.training import recomputation
from bench_server.db.store import Store
from bench_server.db.tables import Challenge, RecomputeJob
from bench_server.log.server_keys import Authority, load_authority

from . import seed, world
from .bulk import bulk
from .databases import Databases, databases
from .lines import state
from .seed import BEGAN, CHECKPOINTS, KEYS, MACHINES_AT_ONCE, Seeding, Shape

CHALLENGES, JOBS = Shape(Challenge), Shape(RecomputeJob)
SHAPES = (*seed.SHAPES, CHALLENGES, JOBS)
SQLITE = """
SELECT m.tbl_name, CASE m.type WHEN 'table' THEN '' ELSE s.name END, SUM(s.pgsize)
FROM dbstat s JOIN sqlite_master m ON m.name = s.name GROUP BY s.name
"""
POSTGRESQL = """
SELECT relname, '', pg_table_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
UNION ALL
SELECT t.relname, i.relname, pg_relation_size(i.oid) FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
WHERE t.relnamespace = 'public'::regnamespace
"""
# A table or index with a smaller share of all bytes is shown with the rest.
SMALL_SHARE = 0.002
Part = tuple[str, str]


@dataclass(frozen=True)
class Fit:
    """A line through bytes by number of results. ``residual``: the largest relative distance of a
    measured size from it."""

    bytes_each: float
    start: float
    residual: float

    def at(self, count: int) -> float:
        """Bytes with this many results."""
        return self.start + self.bytes_each * count


def fit(counts: Sequence[int], sizes: Sequence[int]) -> Fit:
    """Least squares of the relative distances, so that each size counts alike."""
    weights = [1 / max(size, 1) ** 2 for size in sizes]
    total = sum(weights)
    x = sum(w * count for w, count in zip(weights, counts, strict=True)) / total
    y = sum(w * size for w, size in zip(weights, sizes, strict=True)) / total
    rows = list(zip(weights, counts, sizes, strict=True))
    spread = sum(w * (count - x) ** 2 for w, count, _ in rows)
    slope = sum(w * (count - x) * (size - y) for w, count, size in rows) / spread
    found = Fit(slope, y - slope * x, 0.0)
    residual = max(abs(found.at(count) - size) / max(size, 1) for _, count, size in rows)
    return replace(found, residual=residual)


class Whole(Seeding):
    """Whole payloads, and all else that a run leaves in the database."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.waiting |= {shape: [] for shape in SHAPES}
        self._checkpoint = Checkpoint(world.ORIGIN, 10**7, bytes(32)).signed(results.private_key())
        self._sent: list[bytes] = []

    def machine(self, number: int) -> None:
        """A machine's enrollment, its challenge, its run, and its recomputations."""
        kind = number % world.KINDS
        self._sent = list(_payloads(kind))
        identity = hashlib.sha256(b"challenge %d" % number).hexdigest()
        self._whose = {"challenge_id": identity[:32]}
        super().machine(number)
        key_id = self.waiting[KEYS][-1][KEYS.place["key_id"]]
        at = BEGAN + timedelta(seconds=self.frontier.size)
        self._add(
            CHALLENGES, id=identity[:32], nonce=identity, key_id=key_id, issued_at=at,
            run_id=key_id[:32], expires_at=at, used=True, counted=False,
        )  # fmt: skip
        self._entry(kind="key_event", envelope=_enrollment(), key_chain=key_id)
        for job, sealed in _recomputations(kind):
            seed_ = hashlib.sha256(f"{number} {job.key.text}".encode()).hexdigest()[:32]
            self._add(
                JOBS, id=f"{seed_}-{job.batch_size}", seed=seed_, batch_size=job.batch_size,
                challenge_id=identity[:32], nonce=identity, workload=job.workload.name,
                workload_digest=job.workload.digest, key_id=key_id,
                first_index=self.frontier.size, leased_until=at, settled_at=at,
                logged_index=self.frontier.size, processor_seconds=1.0,
            )  # fmt: skip
            self._entry(kind="recomputation", envelope=sealed)

    def _result(self, row, slower, whose):  # type: ignore[no-untyped-def]
        return super()._result(row, slower, {**whose, **self._whose})

    def _payload(self, index: int) -> bytes:
        return self._sent.pop(0)

    def _entry(self, **values: object) -> None:
        digest = None
        if values["kind"] != "result":
            digest = hashlib.sha256(b"payload %d" % self.frontier.size).hexdigest()
        self._add(CHECKPOINTS, size=self.frontier.size, note=self._checkpoint)
        super()._entry(**values, payload_sha256=digest)


@cache
def _payloads(kind: int) -> list[bytes]:
    return world._payloads(world.Sender(kind, results.private_key()))


@cache
def _enrollment() -> bytes:
    body = strict_json.loads(results.enrollment(results.private_key()))
    return strict_json.dumps(body["envelope"])


@cache
def _recomputations(kind: int) -> list[tuple[recomputation.SessionJob, bytes]]:
    """Each job of a run with the envelope of its recomputation."""
    sent = world.Sender(kind, results.private_key()).results()
    jobs = {job.key: job for job in map(recomputation.job, sent) if job is not None}
    return [
        (
            job,
            envelope.seal(
                recomputation.RECOMPUTATION_PAYLOAD_TYPE,
                recomputation.payload(
                    seeding.recomputed(job, "c" * 32, world.ORIGIN, seeding.invented_for)
                ),
                results.private_key(),
            ),
        )
        for job in jobs.values()
    ]


def fill(store: Store, authority: Authority, count: int) -> int:
    """Store at least ``count`` results, in whole runs, in an empty log; returns their number."""
    machines = -(-count // world.RUN)
    with bulk(store.engine, [shape.table for shape in SHAPES], keep_indexes=True) as into:
        whole = Whole(into)
        for number in range(machines):
            whole.machine(number)
            if number % MACHINES_AT_ONCE == MACHINES_AT_ONCE - 1:
                whole.write()
        whole.finish(authority)
    return machines * world.RUN


def measured(made: Databases, kind: str, count: int) -> tuple[int, dict[Part, int]]:
    """Bytes of each table (its index is "") and index of a database with about ``count`` results,
    which is removed again."""
    database = made.empty(kind)
    store = Store(database.url)
    try:
        stored = fill(store, load_authority(world.ORIGIN, database.place / "keys"), count)
        with store.engine.connect() as connection:
            rows = connection.execute(text(SQLITE if kind == "sqlite" else POSTGRESQL)).all()
    finally:
        store.close()
    made.remove(database)
    return stored, {(table, index): int(size) for table, index, size in rows}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.server.sizes")
    parser.add_argument("--databases", default="sqlite,postgresql", help="which, with commas")
    parser.add_argument("--sizes", default="10000,50000,200000", help="results, with commas")
    parser.add_argument("--at", type=int, default=50_000_000, help="extrapolate to this many")
    parser.add_argument("--check", type=int, help="also measure this many, beside the prediction")
    options = parser.parse_args()
    # Databases are stopped and removed however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    kinds = options.databases.split(",")
    began = state()
    with databases(kinds) as made:
        for kind in kinds:
            at = [measured(made, kind, int(size)) for size in options.sizes.split(",")]
            check = measured(made, kind, options.check) if options.check else None
            print(f"\n**{kind}**\n\n{_table(at, options.at, check)}")
    print(f"\nBegan {began}; ended {state()}.")


def _table(
    at: Sequence[tuple[int, dict[Part, int]]],
    target: int,
    check: tuple[int, dict[Part, int]] | None,
) -> str:
    counts = [count for count, _ in at]
    parts = sorted({part for _, sizes in at for part in sizes})
    found = {part: [sizes.get(part, 0) for _, sizes in at] for part in parts}
    all_, rest = ("all", ""), ("the rest", "")
    found[all_] = [sum(sizes.values()) for _, sizes in at]
    least = SMALL_SHARE * found[all_][-1]
    small = {part for part in parts if found[part][-1] < least}
    found[rest] = [sum(sizes.get(part, 0) for part in small) for _, sizes in at]
    fits = {part: fit(counts, sizes) for part, sizes in found.items() if part not in small}
    shown = sorted(fits, key=lambda part: (part in (rest, all_), -fits[part].at(target)))
    heads = ["table", "index", "bytes a result", f"GB at {target:,}, extrapolated", "residual"]
    if check:
        heads.append(f"GB at {check[0]:,}: predicted, measured")
    rows = []
    for part in shown:
        one = fits[part]
        cells = [
            *part,
            f"{one.bytes_each:,.1f}",
            f"{one.at(target) / 1e9:,.2f}",
            percent(one.residual),
        ]
        if check:
            summed = check[1].keys() if part == all_ else small if part == rest else {part}
            really = sum(check[1].get(name, 0) for name in summed)
            cells.append(f"{one.at(check[0]) / 1e9:.3f}, {really / 1e9:.3f}")
        rows.append(cells)
    return markdown(heads, rows)


if __name__ == "__main__":
    main()
