"""Results whose seeds follow from their nonce.

Figures are really recomputed, once for each seed (small workloads take 0.01 to 0.4 s), or invented
where a test is about something else: then the worker of the server is given the same inventions.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache

from bench_protocol.catalogue import nonces, seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.nonces import PURPOSES, Purpose
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Challenge, Result, Trace
from bench_protocol.payload.witness import Rewound, trained_tensors
from bench_protocol.real_data.parse import Split
from bench_protocol.recompute import figures, generated_digest
from bench_protocol.training import conformance, recomputation
from bench_protocol.training.recomputation import JobKey, Recomputation, SeededJob
from bench_protocol.training.recomputed import Figures
from bench_protocol.training.witness_steps import witness_steps

FiguresOf = Callable[[SeededJob], Figures]


@cache
def figures_of(workload: str, purpose: Purpose, nonce: str, batch_size: int) -> Figures:
    return figures(workload_named(workload), purpose, nonce, batch_size)


def invented(workload: Workload, purpose: Purpose, nonce: str, batch_size: int) -> Figures:
    """Figures that cost nothing, the same under every nonce: losses that fall from about that of
    guessing, in a range where Dropout draws masks."""
    start = math.log(workload.data_set.classes)
    start *= 1 + 0.01 * PURPOSES.index(purpose) + 0.001 * math.log2(batch_size)
    moved = (0.5,) * len(list(trained_tensors(workload)))
    losses = tuple(start * 0.99**step for step in range(_steps(workload, purpose, batch_size)))
    if purpose == "timed" and any(isinstance(layer, Dropout) for layer in workload.layers):
        high = tuple(1.02 * loss for loss in losses)
        return Figures(losses=losses, high=high, movements=moved, start_loss=0.9 * start)
    return Figures(losses=losses, movements=moved, start_loss=start)


def _steps(workload: Workload, purpose: Purpose, batch_size: int) -> int:
    if purpose == "timed":
        return witness_steps(workload, batch_size)[-1]
    if purpose == "long":
        return conformance.LONG_STEPS[-1]
    return conformance.trace_steps(workload, purpose)


def invented_for(job: SeededJob) -> Figures:
    return invented(job.workload, job.purpose, job.nonce, job.batch_size)


def figures_of_job(job: SeededJob) -> Figures:
    return figures_of(job.workload.name, job.purpose, job.nonce, job.batch_size)


def traces_of(cell: Cell, nonce: str, of: FiguresOf) -> tuple[Trace, ...]:
    """The traces of a cell under a nonce: short ones in each precision, then the long one."""
    jobs = recomputation.trace_jobs(workload_named(cell.workload), nonce)
    made = []
    for precision in conformance.traced_precisions(cell.precision):
        own = {} if precision == cell.precision else {"precision": precision}
        for job in jobs:
            if job.purpose == "long":
                continue
            right = of(job)
            made.append(
                Trace(
                    optimizer=job.purpose,
                    batch_size=job.batch_size,
                    seed=job.key.seed,
                    losses=right.losses,
                    movements=right.movements,
                    **own,
                )
            )
    if jobs[-1].purpose == "long":
        job, right = jobs[-1], of(jobs[-1])
        made.append(
            Trace(
                optimizer="sgd",
                batch_size=job.batch_size,
                seed=job.key.seed,
                losses=tuple(right.losses[step - 1] for step in conformance.LONG_STEPS),
                steps=conformance.LONG_STEPS,
                movements=right.movements,
            )
        )
    return tuple(made)


def seed_honestly(result: Result, of: FiguresOf = figures_of_job) -> Result:
    """The result as an honest agent sends it under its nonce."""
    nonce = result.seeding_nonce
    assert result.measurement is not None
    seed = nonces.seed_of(nonce, result.cell.workload_digest, "timed")
    result = with_traces(
        result.model_copy(update={"seed": seed}), traces_of(result.cell, nonce, of)
    )
    timed = [
        job
        for job in recomputation.jobs(result)
        if job.purpose == "timed" and job.data == "generated"
    ]
    assert result.measurement is not None
    told = result.measurement.witness
    if not timed or told is None:
        return result
    right = of(timed[0])
    losses = tuple(right.losses[step - 1] for step in told.steps)
    again = Rewound(start_loss=right.start_loss, losses=losses, movements=right.movements)
    told = told.model_copy(update={"losses": losses, "rewound": again})
    measured = result.measurement.model_copy(update={"witness": told})
    return with_measurement(result, measured)


def train_on(result: Result, splits: tuple[Split, Split], times: float = 1.0) -> Result:
    """The result with what an honest agent says of its session on these samples, train and test;
    or with losses that many times as large."""
    (job,) = (job for job in recomputation.jobs(result) if job.purpose == "timed")
    right = figures(job.workload, job.purpose, job.nonce, job.batch_size, splits[0])
    assert result.measurement is not None
    told = result.measurement.witness
    assert told is not None
    losses = tuple(times * right.losses[step - 1] for step in told.steps)
    again = Rewound(start_loss=times * right.start_loss, losses=losses, movements=right.movements)
    witness = told.model_copy(update={"losses": losses, "rewound": again})
    changes = {"witness": witness, "data_digest": seeded.data_digest(*splits)}
    return with_measurement(result, result.measurement.model_copy(update=changes))


BOUND = Challenge(id="c" * 32, nonce="c0" * 32, server_origin="tests")
# The nonce of results that no test gives a nonce or a challenge.
OWN_NONCE = "a0" * 32


def under_nonce(result: Result) -> Result:
    """The result of :func:`tests.fakes.results.make_result`, whose seeds follow from
    ``OWN_NONCE``, with the seeds of its challenge or its nonce. A seed that a test has changed
    stays.

    A result with ``OWN_NONCE`` itself gets a challenge.
    """
    if result.nonce == OWN_NONCE:
        result = result.model_copy(update={"challenge": BOUND, "nonce": None})
    nonce, digest = result.seeding_nonce, result.cell.workload_digest
    seeds = {
        nonces.seed_of(OWN_NONCE, digest, purpose): nonces.seed_of(nonce, digest, purpose)
        for purpose in PURPOSES
    }
    result = result.model_copy(update={"seed": seeds.get(result.seed, result.seed)})
    if result.measurement is None:
        return result
    return with_traces(
        result,
        [
            trace.model_copy(update={"seed": seeds.get(trace.seed, trace.seed)})
            for trace in result.measurement.traces
        ],
    )


def recomputed_for(result: Result, of: FiguresOf) -> dict[JobKey, Recomputation]:
    """What a server would have said of the result's jobs on generated data."""
    return {
        job.key: recomputed(job, BOUND.id, BOUND.server_origin, of)
        for job in recomputation.jobs(result)
        if job.data == "generated"
    }


def with_traces(result: Result, traces: Sequence[Trace]) -> Result:
    assert result.measurement is not None
    return with_measurement(result, result.measurement.model_copy(update={"traces": tuple(traces)}))


def with_measurement(result: Result, measured: object) -> Result:
    outcome = result.outcome.model_copy(update={"measurement": measured})
    return result.model_copy(update={"outcome": outcome})


def recomputed(job: SeededJob, challenge: str, origin: str, of: FiguresOf) -> Recomputation:
    digest = "e" * 64 if job.data == "real" else generated_digest(job.workload.data_set)
    return Recomputation(
        challenge=challenge,
        nonce=job.nonce,
        workload=job.workload.name,
        workload_digest=job.workload.digest,
        purpose=job.purpose,
        batch_size=job.batch_size,
        seed=job.key.seed,
        server_origin=origin,
        verdict="computed",
        figures=of(job),
        tolerance=recomputation.tolerance(job),
        data=job.data,
        data_digest=digest if job.purpose == "timed" else None,
    )
