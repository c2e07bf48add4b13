"""How fast the server takes results in and answers, beside its peers: ``make benchmark-server``.

Prints one table as Markdown; every figure is of this machine in this run, with the load it had.
"""

import argparse
import signal
import sys
from functools import partial

from rich.console import Console
from tests.fakes import postgres

from . import asking, load, peers, taking
from .databases import Database, Databases, databases
from .lines import Found, Step, found_by, state, table, versions

WORKERS = (1, 2)
# About how long things take, for the time left: a start, a thousand results seeded, the envelopes
# for a second of posting, a peer's installation.
START_SECONDS = 4
THOUSAND_SECONDS = 0.2
ENVELOPES_SECONDS = 0.6
INSTALL_SECONDS = 60


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.server")
    parser.add_argument("--databases", default="sqlite,postgresql", help="which, with commas")
    parser.add_argument(
        "--sizes", default="1000,100000,1000000", help="results stored, the least first"
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--no-peers", action="store_true", help="without LNT and MLflow")
    options = parser.parse_args()
    load.require()
    # Servers and databases are stopped and removed however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console(soft_wrap=True)
    kinds = options.databases.split(",")
    notes = []
    if "postgresql" in kinds:
        try:
            postgres.programs()
        except FileNotFoundError as missing:
            kinds.remove("postgresql")
            notes.append(f"PostgreSQL is not measured: {missing}")
    began = state()
    with databases(kinds) as made:
        plan = Plan(made, [int(size) for size in options.sizes.split(",")], options.seconds)
        steps = [step for kind in kinds for step in plan.of(kind)]
        steps += [] if options.no_peers else plan.of_peers()
        found = [*notes, *found_by(steps, console)]
    print(f"\nBegan {began}; ended {state()}.\n{versions()}\n\n{table(found)}\n")
    for note in found:
        if isinstance(note, str):
            print(f"* {note}")


class Plan:
    """The steps; what an early one makes, later ones use."""

    def __init__(self, made: Databases, sizes: list[int], seconds: float) -> None:
        self.made, self.sizes, self.seconds = made, sizes, seconds
        self.filled: dict[tuple[str, int], Database] = {}

    def of(self, kind: str) -> list[Step]:
        """All about one kind of database: questions first, since posting adds results."""
        least, most = min(self.sizes), max(self.sizes)
        questions = START_SECONDS + 8 * (self.seconds + 1)
        a_load = self.seconds * (1 + ENVELOPES_SECONDS)
        steps = []
        for size in self.sizes:
            fill = START_SECONDS + size / 1000 * THOUSAND_SECONDS
            steps.append(
                Step(f"{kind}, {size:,} results seeded", fill, partial(self._fill, kind, size))
            )
            ask = partial(self._questions, kind, size)
            steps.append(Step(f"{kind}, {size:,} results, questions", questions, ask))
        if most > least:
            words = f"{kind}, results posted with {least:,} and {most:,} stored in turns"
            together = taking.ROUNDS * 2 * a_load / 2
            steps.append(Step(words, together, partial(self._compared, kind, least, most)))
        for workers in WORKERS:
            words = f"{kind}, {least:,} results, results posted, workers: {workers}"
            post = partial(self._posted, kind, least, workers)
            steps.append(Step(words, START_SECONDS + 3 * a_load, post))
        words = f"{kind}, {least:,} results, results posted for a minute"
        minute = taking.SUSTAINED_SECONDS * (1 + ENVELOPES_SECONDS)
        sustain = partial(self._sustained, kind, least)
        steps.append(Step(words, START_SECONDS + minute, sustain))
        return steps

    def of_peers(self) -> list[Step]:
        expected = INSTALL_SECONDS / len(WORKERS) + START_SECONDS + 2 * self.seconds
        return [
            Step(
                f"{peer.name}, workers: {workers}",
                expected,
                partial(peers.measured, peer, workers, self.seconds),
            )
            for peer in peers.PEERS
            for workers in WORKERS
        ]

    def _fill(self, kind: str, size: int) -> Found:
        self.filled[kind, size] = self.made.new(kind, size)
        return ()

    def _questions(self, kind: str, size: int) -> Found:
        return asking.measured(self.filled[kind, size], self.seconds / 2)

    def _compared(self, kind: str, least: int, most: int) -> Found:
        return taking.compared(self.filled[kind, least], self.filled[kind, most], self.seconds / 2)

    def _sustained(self, kind: str, size: int) -> Found:
        return taking.sustained(self.made.new(kind, size), WORKERS[-1])

    def _posted(self, kind: str, size: int, workers: int) -> Found:
        return taking.measured(self.made.new(kind, size), workers, self.seconds)


if __name__ == "__main__":
    main()
