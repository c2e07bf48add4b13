"""``make faults``: plant faults in the agent, and show which check detects which.

Exit status 1 if a slip is ranked, or fewer than 95 % of all faults are caught, or a fault of which
nobody has said why no check can see it is ranked; or if an honest control is not ranked; with
``--honest``, if more than 1 % is refused.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench_protocol.catalogue.catalogue import workload_named

from . import document, honest, proofs, table
from .fault import Fault
from .planted import BY_NAME, FAULTS, controls
from .run import Outcome, run_all

WORKERS = 2
# About how long one takes with another beside it, before any has ended.
SECONDS_EACH = 10.0
# One without dropout, one with it, one with convolutions, one with an LSTM.
PROOF_WORKLOADS = ("mnist-dense", "fashion-mlp", "mnist-cnn", "fashion-lstm")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.evidence.faults", description=__doc__)
    parser.add_argument("--only", help="names, with commas: B1,B17; without their controls")
    parser.add_argument("--no-controls", action="store_true", help="without honest runs")
    parser.add_argument("--workers", type=int, default=WORKERS, choices=(1, 2))
    parser.add_argument("--honest", type=int, metavar="N", help="N honest repeats, no faults")
    parser.add_argument("--document", type=Path, metavar="FILE", help="write docs/faults.md there")
    options = parser.parse_args(arguments)
    # Workers and the server end with this process, however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.honest:
        return honest.run(options.honest, options.workers)
    chosen = selected(options.only)
    without_fault = () if options.no_controls else controls(chosen)
    progress = Progress(len(chosen) + len(without_fault), options.workers)
    began = time.monotonic()
    outcomes = run_all((*without_fault, *chosen), options.workers, progress)
    seconds = proofs.recomputed_seconds(
        [] if options.only else [workload_named(name) for name in PROOF_WORKLOADS]
    )
    print(f"\n{table.markdown(outcomes)}\n\n{table.by_group(outcomes)}\n")
    print(f"{table.by_proof(outcomes, seconds)}\n")
    for line in table.wrong(outcomes):
        print(line)
    print(table.summary(outcomes))
    if options.document:
        text = document.page(outcomes, seconds, datetime.now(UTC), time.monotonic() - began)
        options.document.write_text(text, encoding="utf-8")
    return 1 if table.wrong(outcomes) else 0


def selected(names: str | None) -> tuple[Fault, ...]:
    """The faults of these names; without any, all but those of ``BY_NAME``.

    Raises:
        SystemExit: there is no such name.
    """
    if not names:
        return FAULTS
    known = {fault.name: fault for fault in (*FAULTS, *BY_NAME)}
    wanted = [name.strip() for name in names.split(",")]
    if missing := [name for name in wanted if name not in known]:
        sys.exit(f"no fault is named {', '.join(missing)}; choose of: {', '.join(known)}")
    return tuple(known[name] for name in wanted)


class Progress:
    """Prints each outcome with the time left."""

    def __init__(self, total: int, workers: int) -> None:
        self._total, self._done, self._began = total, 0, time.monotonic()
        print(f"{total} runs, about {total * SECONDS_EACH / workers / 60:.0f} min", flush=True)

    def __call__(self, outcome: Outcome) -> None:
        self._done += 1
        left = (time.monotonic() - self._began) / self._done * (self._total - self._done)
        name, *_ = table.cells(outcome)
        state = "ranked" if outcome.ranked else "not ranked"
        mark = "" if outcome.right else "  <--"
        speed = f"{outcome.speed:>12,.0f}/s" if outcome.speed else " " * 14
        print(
            f"{self._done:3}/{self._total}  {left / 60:4.1f} min left  {name:8} "
            f"{outcome.fault.words[:40]:40} {outcome.fault.setup!s:34} {state:10} "
            f"trust {outcome.trust} {speed}  {table.checks(outcome)}"
            f" [{', '.join(outcome.proofs)}]{mark}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
