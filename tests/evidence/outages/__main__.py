"""``make test-faults``: harm a site in every way we know, on SQLite, PostgreSQL and PgBouncer
before it, while agents submit; then no acknowledged result may be lost or doubled.

The real server, the agent's real outbox and client, one fault after the other on loopback. The end
is a table in Markdown. Exit code 1 if a result is lost, doubled or left in an outbox, if tree and
rows disagree, or if the server's starts take too much processor time. ``KILLS`` (300) is the number
of kills on all databases together.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence

from tests.fakes import postgres

from . import scene, table
from .databases import KINDS, POSTGRESQL, Missing
from .faults import FAULTS, KILLS, Fault

DEFAULT_KILLS = 300


def planned(names: Sequence[str], kinds: Sequence[str], kills: int) -> list[tuple[Fault, str]]:
    """Faults and their databases, in the order of the table."""
    share = kills // len(KILLS.databases)
    seconds = KILLS.seconds * share / KILLS.times
    scaled = KILLS._replace(times=share, seconds=seconds)
    return [
        (scaled if fault is KILLS else fault, kind)
        for fault in FAULTS
        for kind in fault.databases
        if kind in kinds and (not names or any(name in fault.name for name in names))
    ]


def play(plan: Sequence[tuple[Fault, str]]) -> list[scene.Outcome]:
    """Play each; lines say what is next, the time left and what came of it."""
    outcomes = []
    began, cost = time.monotonic(), sum(fault.seconds for fault, _ in plan)
    done = 0.0
    cluster = postgres.start(durable=True) if any(k in POSTGRESQL for _, k in plan) else None
    try:
        for number, (fault, kind) in enumerate(plan, 1):
            pace = (time.monotonic() - began) / done if done else 1.0
            left = f"about {(cost - done) * pace / 60:.0f} min left"
            say(f"[{number}/{len(plan)}] {kind}: {fault.name} x {fault.times}, {left}")
            try:
                outcome = scene.play(fault, kind, fault.times, cluster)
            except Missing as error:
                say(f"  left out: {error}")
            else:
                outcomes.append(outcome)
                say(table.row(outcome))
                for line in table.wrong([outcome]):
                    say(f"  WRONG: {line}")
            done += fault.seconds
    finally:
        if cluster:
            cluster.stop()
    return outcomes


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-faults")
    parser.add_argument("--only", default="", help="parts of faults' names, separated by commas")
    parser.add_argument("--database", choices=KINDS, action="append", help="one of the databases")
    options = parser.parse_args()
    kills = int(os.environ.get("KILLS") or DEFAULT_KILLS)
    names = [name for name in options.only.split(",") if name]
    if not (plan := planned(names, options.database or KINDS, kills)):
        parser.error(f"no fault is named so; choose of: {'; '.join(f.name for f in FAULTS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    outcomes = play(plan)
    print(table.markdown(outcomes))
    print(f"\n{table.summary(outcomes)}")
    for line in table.wrong(outcomes):
        print(f"WRONG: {line}")
    return 0 if outcomes and all(outcome.is_right for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
