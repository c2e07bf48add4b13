"""Measure the limits of workloads: ``python -m benchmarks.limits WORKLOAD``.

It trains each workload for its own number of epochs on generated data, once a nonce, and writes the
loss curve and the accuracy band to ``bench_protocol/training/measured_limits.json``. Time: nonces
times the workload's epochs. ``--only`` and ``--fault`` print and write nothing:

* ``--only readings``: how far readings of honest sessions are from their recomputation. The limits
  that all workloads share rest on what this prints. ``--form all`` takes every form of the recipe;
  ``--json`` adds a line for each session to a file; ``--kept`` names a folder of recomputations,
  which ``--only figures`` fills.
* ``--fault``: curves of training that is wrong on purpose, to see whether a band shows it.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench_agent import engines
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.catalogue.nonces import seed_of

from . import entry, learning_curves, witness_deviations

NAMES = sorted(workload.name for workload in CATALOGUE)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and write the entries."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.limits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workloads", nargs="+", choices=NAMES, metavar="WORKLOAD")
    parser.add_argument("--framework", choices=engines.names(), default="jax")
    parser.add_argument("--recipe", default="tuned")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--nonces", type=int, default=5, help="sessions of each workload")
    parser.add_argument(
        "--first", type=int, default=1, metavar="N", help="number of the first nonce"
    )
    parser.add_argument("--batch-size", type=int, help="the workload's own without")
    parser.add_argument("--only", choices=("readings", "figures"))
    parser.add_argument("--form", default="", help="form of the recipe's step; all: every form")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--kept", type=Path, metavar="FOLDER")
    parser.add_argument("--fault", choices=learning_curves.FAULTS)
    chosen = parser.parse_args(arguments)
    nonces = [f"{number:064x}" for number in range(chosen.first, chosen.first + chosen.nonces)]
    for name in chosen.workloads:
        workload = workload_named(name)
        cell = Cell(
            workload=name,
            workload_digest=workload.digest,
            framework=chosen.framework,
            device=Device(kind=chosen.device),
            recipe=chosen.recipe,
            batch_size=chosen.batch_size or workload.batch_size,
            precision=chosen.precision,
            data="generated",
        )
        if chosen.only == "figures":
            for nonce in nonces:
                witness_deviations.recomputed(name, nonce, cell.batch_size, chosen.kept)
                _print(f"{name}: nonce {int(nonce, 16)} is recomputed")
            continue
        if chosen.only == "readings":
            for form in witness_deviations.forms_of(cell, chosen.form):
                rows = []
                for row in witness_deviations.sessions(cell, nonces, form, chosen.kept):
                    rows.append(row)
                    if chosen.json:
                        witness_deviations.append(chosen.json, row)
                what = f"{cell} {form}".strip()
                _print(f"{what}, {len(nonces)} nonces: {witness_deviations.line(rows)}")
            continue
        sessions = []
        for seed in (seed_of(nonce, workload.digest) for nonce in nonces):
            sessions.append(learning_curves.curve(workload, cell, seed, chosen.fault))
            _print(json.dumps({"cell": str(cell), "fault": chosen.fault, "curve": sessions[-1]}))
        if not chosen.fault:
            command = shlex.join(["python", "-m", "benchmarks.limits", *arguments])
            entry.write(workload, sessions, f"{datetime.now(UTC):%Y-%m-%d}", command)
    return 0


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
