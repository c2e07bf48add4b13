"""How long the daily draw of asks reads a large log, and for how long it keeps writers waiting:
``make benchmark-asks``.

A database of many results, all within the week before the draw. As many machines as that gives
have measured each cell in several runs, so that the history of each is searched for changes. One
result in 85 is an outlier.
"""

import argparse
import os
import tempfile
import time
from datetime import timedelta
from typing import Any

from sqlalchemy import func, insert, select, update
from tests.fakes.authority import AUTHORITY

from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.db.tables import Submission, table_of
from bench_server.projection import asks
from bench_server.ranking.rows import TABLE

from .server import world
from .server.seed import BEGAN, seed

# About what a result takes.
PAYLOAD_BYTES = 7_000
OUTLIER = '{"passed":false,"sentence":"far from others"}'
SUBMISSIONS = table_of(Submission)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make benchmark-asks", description=__doc__)
    parser.add_argument("--sizes", default="1000,100000", help="results stored, with commas")
    parser.add_argument("--runs", type=int, default=10, help="of a cell on a machine")
    options = parser.parse_args()
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            store = Store(f"sqlite:///{folder}/server.db")
            migrate.migrate(store.engine)
            stored = seed(store, AUTHORITY, size)
            histories = fill(store, stored, options.runs)
            print(f"{stored:,} results, {histories:,} histories of {options.runs} runs: ", end="")
            print(timed(store, stored), f"(load {os.getloadavg()[0]:.1f})", flush=True)
            store.close()


def fill(store: Store, results: int, runs: int) -> int:
    """Give payloads their size, some machines more runs, and some results a finding.

    Returns:
        The number of cells of machines that have the runs.
    """
    histories = results // world.REPEATS // runs
    with store.writing() as session:
        connection = session.connection()
        payload = func.randomblob(PAYLOAD_BYTES)
        connection.execute(update(SUBMISSIONS).values(payload=payload))
        # Ids are digests: 3 of 256 are one in 85.
        some = func.substr(SUBMISSIONS.c.id, 1, 2).in_(("a7", "b7", "c7"))
        connection.execute(update(SUBMISSIONS).where(some).values(outlier=OUTLIER))
        chosen = select(TABLE.c.id).where(TABLE.c.level == "machine").limit(histories)
        machines = connection.execute(chosen).scalars().all()
        for machine in machines:
            own = update(TABLE).where(TABLE.c.id == machine)
            connection.execute(own.values(runs=runs))
            first = connection.execute(select(TABLE).where(TABLE.c.parent_id == machine)).one()
            more = [later(first._asdict(), number) for number in range(1, runs)]
            if more:
                connection.execute(insert(TABLE), more)
    return len(machines)


def later(row: dict[str, Any], number: int) -> dict[str, Any]:
    """Another run, an hour after the one before and up to a percent slower."""
    noise = 1 + (number * 7919 % 100) / 10_000
    return row | {
        "id": f"{row['id'][:-4]}{number:04x}",
        "ns_per_sample": row["ns_per_sample"] * noise,
        "newest_at": row["newest_at"] + timedelta(hours=number),
    }


def timed(store: Store, size: int) -> str:
    """The number of asks, and the seconds of reading and writing."""
    day = (BEGAN + timedelta(days=3)).date()
    began, used = time.perf_counter(), time.process_time()
    with store.reading() as session:
        drawn = asks.draw(session.connection(), day, size)
    read, used = time.perf_counter(), time.process_time() - used
    assert drawn is not None
    with store.writing_in_turn() as session:
        asks.store(session.connection(), drawn)
    ended = time.perf_counter()
    return (
        f"{len(drawn.rows)} asks, reading {read - began:.2f} s ({used:.2f} of the processor), "
        f"writing {ended - read:.3f} s"
    )


if __name__ == "__main__":
    main()
