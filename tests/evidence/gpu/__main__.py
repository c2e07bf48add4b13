"""``make check-gpu``: the first hour on an NVIDIA GPU, in steps of under nine minutes.

``pack FOLDER`` makes a folder for a machine without a network; there ``python3 FOLDER/start.py
STEP`` runs a step. Steps: facts, readings, clock, loops, speeds, breaks. Each ends with the table
of all results so far and ``figures.json``, which ``apply FILE`` turns into limits and documents.
"""

import argparse
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from . import table
from .parts import run
from .steps import NAMES, PRECISIONS, STEPS, Asked

LIMIT_SECONDS = 520


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="make check-gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("what", choices=("pack", *STEPS, "table", "apply"))
    made.add_argument("path", nargs="?", type=Path, help="the folder of pack or the file of apply")
    made.add_argument("--no-wheels", action="store_true", help="pack: sources alone")
    made.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "/tmp/out"))
    kept = Path(os.environ["KEPT"]) if os.environ.get("KEPT") else None
    made.add_argument("--kept", type=Path, default=kept, help="folder of recomputations")
    made.add_argument("--device", choices=("cuda", "cpu"), default=os.environ.get("DEVICE", "cuda"))
    made.add_argument("--frameworks", type=words, default=("torch", "jax"))
    made.add_argument("--workloads", type=words, default=NAMES)
    made.add_argument("--precisions", type=words, default=PRECISIONS)
    made.add_argument("--nonces", type=int, default=5, help="sessions of each cell of readings")
    made.add_argument("--seconds", type=float, default=3.0, help="of steps in each timed part")
    made.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="most seconds of a step")
    made.add_argument("--patience", type=float, default=1.0, help="factor of each part's limit")
    return made


def main() -> int:
    """Pack, run a step, print the table or apply it. Returns 1 if a part of the step failed or was
    left out."""
    failed: list[str] = []
    asked = parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    if asked.what in ("pack", "apply") and not asked.path:
        parser().error(f"{asked.what} needs a path")
    if asked.what == "pack":
        from .pack import NotPacked, pack

        try:
            print(pack(asked.path, wheels=not asked.no_wheels, kept=asked.kept))
        except NotPacked as problem:
            print(f"NOT PACKED: {problem}")
            return 1
        return 0
    if asked.what == "apply":
        from .apply import apply

        try:
            print("\n".join(apply(asked.path)))
        except (OSError, ValueError, KeyError) as problem:
            print(f"NOT APPLIED: {asked.path}: {problem!r}")
            return 1
        return 0
    if asked.what in STEPS:
        cells = Asked(
            device=asked.device,
            frameworks=asked.frameworks,
            workloads=asked.workloads,
            precisions=asked.precisions,
            nonces=asked.nonces,
            seconds=asked.seconds,
            out=asked.out.resolve(),
            kept=(asked.kept or asked.out / "kept").resolve(),
        )
        parts = [
            replace(part, seconds=part.seconds * asked.patience)
            for part in STEPS[asked.what](cells)
        ]
        failed = run(asked.what, parts, cells.out, asked.limit)
    for line in table.write(asked.out):
        print(line)
    if failed:
        print(f"FAILED OR LEFT OUT: {'; '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
