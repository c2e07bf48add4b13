"""``bench-server`` as the outages start it: ``python -m tests.evidence.outages.program COMMAND``.

Everything is the server's own, with three seams: SIGUSR1 sets its clock by the file that
``CLOCK_FILE`` names, a recomputation returns invented figures after a moment, because the results
are invented too, and the lease of a killed worker's job is two seconds instead of ten minutes.
"""

import os
import random
import signal
import sys
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

CLOCK_FILE = "CHECK_OUTAGES_CLOCK"
COMPUTE_SECONDS = 0.05
LEASE = timedelta(seconds=2)


def main(arguments: list[str]) -> None:
    """Run a command of ``bench-server``."""
    if CLOCK_FILE in os.environ:  # first: until then the signal would end the process
        _follow_clock(Path(os.environ[CLOCK_FILE]))
    if arguments[0] == "recompute":
        _recompute_quickly()
    from bench_server.cli.main import main as run

    run(arguments)


def _recompute_quickly() -> None:
    from tests.fakes.seeding import invented

    from bench_server.cli import recompute
    from bench_server.recompute import jobs, worker

    def compute(*job: object) -> object:
        time.sleep(random.uniform(0, COMPUTE_SECONDS))
        return invented(*job)  # type: ignore[arg-type]

    recompute.Recomputer = partial(worker.Recomputer, compute=compute)  # type: ignore
    jobs.LEASE = LEASE


def _follow_clock(file: Path) -> None:
    import time_machine

    shifted: list[time_machine.travel] = []

    def shift(*_: object) -> None:
        while shifted:
            shifted.pop().stop()
        offset = timedelta(seconds=float(file.read_text()))
        shifted.append(time_machine.travel(offset, tick=True))
        shifted[0].start()

    signal.signal(signal.SIGUSR1, shift)
    if file.exists():
        shift()


if __name__ == "__main__":
    main(sys.argv[1:])
