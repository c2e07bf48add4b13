"""Compute the references of witnesses and of long traces, in NumPy float64.

``python -m bench_agent.tools.witness_references [WORKLOAD...]`` writes
``witness_references.json`` and ``long_trace_references.json`` beside the catalogue: for the named
workloads, or all. It takes about ten seconds of one core for each batch size of the catalogue. It
must run again when a workload, the generated data, ``READINGS`` or the reference traces' seeds
change.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from bench_protocol import conformance, long_trace, seeded, witness_references
from bench_protocol.catalogue import CATALOGUE, workload_named
from bench_protocol.long_trace import LongReference
from bench_protocol.recompute import long_trace_job, recompute, timed_job, witness_band
from bench_protocol.units import Wire
from bench_protocol.witness_references import WitnessReference
from bench_protocol.witness_steps import witness_steps
from bench_protocol.workloads import Workload


def main(names: Sequence[str], folder: Path = Path(conformance.__file__).parent) -> int:
    """Compute the references of the named workloads, or of all; the files have one per line."""
    witnesses = dict(witness_references.references()) if names else {}
    longs = dict(long_trace.references()) if names else {}
    for workload in [workload_named(name) for name in names] or CATALOGUE:
        digest = data_digest(workload)
        for batch_size in witness_references.batch_sizes(workload):
            made = witness_reference(workload, batch_size, digest)
            witnesses[made.key] = made
            _say(f"{workload.name}, batch {batch_size}: {made.steps[-1]} steps")
        if conformance.is_long_traced(workload):
            longs[workload.digest] = long_reference(workload)
    digests = {workload.digest for workload in CATALOGUE}
    stored = [made for made in witnesses.values() if made.workload_digest in digests]
    _write(folder / witness_references.FILE, stored)
    _write(
        folder / long_trace.FILE,
        [made for made in longs.values() if made.workload_digest in digests],
    )
    return 0


def data_digest(workload: Workload) -> str:
    """The digest of the workload's generated data, as results carry it."""
    data_set = workload.data_set
    splits = ["train", *(["validation"] if data_set.validation_samples else []), "test"]
    return seeded.data_digest(*(seeded.generated_data(data_set, split) for split in splits))


def witness_reference(workload: Workload, batch_size: int, data_digest: str) -> WitnessReference:
    """The range of one cell's losses, under the default seed."""
    steps = witness_steps(workload, batch_size)
    job = timed_job(workload, batch_size, seeded.DEFAULT_SEED)
    band = witness_band(job, steps[-1])
    low, high = (_rounded(end.losses) for end in (band.low, band.high))
    # The recomputation leaves dropout out unless it is given masks.
    start = recompute(job, 1).losses if high != low else ()
    return WitnessReference(
        workload=workload.name,
        workload_digest=workload.digest,
        data_digest=data_digest,
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
