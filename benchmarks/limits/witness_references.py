"""Compute the references of witnesses and of long traces, in NumPy float64.

``python -m benchmarks.limits.witness_references [--idx FOLDER] [WORKLOAD...]`` writes
``witness_references.json`` and ``long_trace_references.json`` beside the catalogue: for the named
workloads, or all. It takes about ten seconds of one core for each batch size of the catalogue. It
must run again when a workload, the generated data, ``READINGS`` or the reference traces' seeds
change.

Without ``--idx`` it computes on generated data. With it, on the real data in the four compressed
IDX files of a folder, for the workloads of that data set, which must be named.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench_protocol.base.units import Wire
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import DataKind
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.real_data import cut, parse
from bench_protocol.real_data.parse import Split
from bench_protocol.recompute import long_trace_job, recompute, timed_job, witness_band
from bench_protocol.training import conformance, long_trace, witness_references
from bench_protocol.training.long_trace import LongReference
from bench_protocol.training.witness_references import WitnessReference
from bench_protocol.training.witness_steps import witness_steps

IDX_FILES = tuple(
    f"{part}-{kind}-ubyte.gz"
    for part in ("train", "t10k")
    for kind in ("images-idx3", "labels-idx1")
)


def main(arguments: Sequence[str], folder: Path = Path(conformance.__file__).parent) -> int:
    """Compute the references of the named workloads, or of all; the files have one per line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits.witness_references")
    parser.add_argument("names", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--idx", type=Path, metavar="FOLDER", help="the folder of real data")
    asked = parser.parse_args(arguments)
    chosen = [workload_named(name) for name in asked.names]
    if asked.idx and not chosen:
        parser.error("--idx: name the workloads of that data set")
    kind: DataKind = "real" if asked.idx else "generated"
    chosen = chosen or list(CATALOGUE)
    kept = [
        stored
        for stored in witness_references.references().values()
        if (stored.data, stored.workload) not in {(kind, workload.name) for workload in chosen}
    ]
    longs = dict(long_trace.references())
    made = [
        reference
        for workload in chosen
        for reference in witnesses(workload, kind, splits(workload, asked.idx))
    ]
    for workload in chosen:
        if kind == "generated" and conformance.is_long_traced(workload):
            longs[workload.digest] = long_reference(workload)
    digests = {workload.digest for workload in CATALOGUE}
    order = {workload.name: place for place, workload in enumerate(CATALOGUE)}
    stored = sorted(
        (reference for reference in [*kept, *made] if reference.workload_digest in digests),
        key=lambda one: (one.data, order[one.workload], one.batch_size),
    )
    _write(folder / witness_references.FILE, stored)
    _write(
        folder / long_trace.FILE,
        [reference for reference in longs.values() if reference.workload_digest in digests],
    )
    return 0


def splits(workload: Workload, idx: Path | None) -> tuple[Split, ...]:
    """The workload's samples: generated ones, or those of the IDX files in a folder."""
    data_set = workload.data_set
    if idx is not None:
        return cut(parse.idx_gz(*((idx / name).read_bytes() for name in IDX_FILES)), data_set)
    names = ("train", *(["validation"] if data_set.validation_samples else []), "test")
    return tuple(seeded.generated_data(data_set, name) for name in names)


def witnesses(
    workload: Workload, kind: DataKind, samples: Sequence[Split]
) -> list[WitnessReference]:
    """The ranges of a workload's cells, one for each batch size, under the default seed."""
    digest, made = seeded.data_digest(*samples), []
    for batch_size in witness_references.batch_sizes(workload):
        made.append(witness_reference(workload, batch_size, kind, digest, samples[0]))
        _say(f"{workload.name}, batch {batch_size}, {kind} data: {made[-1].steps[-1]} steps")
    return made


def witness_reference(
    workload: Workload, batch_size: int, kind: DataKind, digest: str, train: Split
) -> WitnessReference:
    """The range of one cell's losses, under the default seed.

    Args:
        digest: of all splits of the data, as results carry it.
        train: pictures and labels of the training split.
    """
    steps = witness_steps(workload, batch_size)
    job = timed_job(workload, batch_size, seeded.DEFAULT_SEED)
    band = witness_band(job, steps[-1], split=train)
    low, high = (_rounded(end.losses) for end in (band.low, band.high))
    # The recomputation leaves dropout out unless it is given masks.
    start = recompute(job, 1, train).losses if high != low else ()
    return WitnessReference(
        workload=workload.name,
        workload_digest=workload.digest,
        data=kind,
        data_digest=digest,
        batch_size=batch_size,
        seed=seeded.DEFAULT_SEED,
        steps=steps,
        low=low,
        high=() if high == low else high,
        start_loss=_rounded(start)[0] if start else None,
    )


def long_reference(workload: Workload) -> LongReference:
    """The long trace of a workload, under the seed of its trace under SGD."""
    seed = conformance.references()[workload.digest, "sgd"].seed
    job = long_trace_job(workload, seed)
    right = recompute(job, conformance.LONG_STEPS[-1])
    return LongReference(
        workload=workload.name,
        workload_digest=workload.digest,
        batch_size=job.batch_size,
        seed=seed,
        steps=conformance.LONG_STEPS,
        losses=_rounded([right.losses[step - 1] for step in conformance.LONG_STEPS]),
        movements=_rounded(right.movements),
    )


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.10g}") for value in values)


def _write(path: Path, made: Sequence[Wire]) -> None:
    lines = [reference.model_dump_json(exclude_defaults=True) for reference in made]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
