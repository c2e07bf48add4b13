"""Results whose seeds follow from their nonce.

Figures are really recomputed, once for each seed (small workloads take 0.01 to 0.4 s), or invented
where a test is about something else: then the worker of the server is given the same inventions.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache

from bench_protocol.catalogue import nonces, seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.nonces import Purpose
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Challenge, Result, Trace
from bench_protocol.payload.witness import Rewound, trained_tensors
from bench_protocol.real_data.parse import Split
from bench_protocol.recompute import figures
from bench_protocol.training import conformance, recomputation, witness_references
from bench_protocol.training.recomputation import JobKey, Recomputation, SeededJob
from bench_protocol.training.recomputed import Figures
from bench_protocol.training.witness_references import WitnessReference
from bench_protocol.training.witness_steps import witness_steps

FiguresOf = Callable[[SeededJob], Figures]


@cache
def figures_of(workload: str, purpose: Purpose, nonce: str, batch_size: int) -> Figures:
    return figures(workload_named(workload), purpose, nonce, batch_size)


def invented(workload: Workload, purpose: Purpose, nonce: str, batch_size: int) -> Figures:
    """Figures that cost nothing: the public job's losses under every nonce."""
    moved = (0.5,) * len(list(trained_tensors(workload)))
    if purpose != "timed":
        losses = conformance.references()[workload.digest, purpose].losses
        steps = conformance.seeded_steps(workload, purpose)
        return Figures(losses=losses[:steps], movements=moved, start_loss=losses[0])
    if one := _stored(workload, batch_size):
        start = one.start or 0.0
        return Figures(losses=one.low, high=one.high, movements=moved, start_loss=start)
    guessing = math.log(workload.data_set.classes)
    steps = witness_steps(workload, batch_size)[-1]
    losses = tuple(guessing / step for step in range(1, steps + 1))
    return Figures(losses=losses, movements=moved, start_loss=guessing)


def _stored(workload: Workload, batch_size: int) -> WitnessReference | None:
    for one in witness_references.references().values():
        if (one.workload_digest, one.data, one.batch_size) == (
            workload.digest,
            "generated",
            batch_size,
        ):
            return one
    return None


def invented_for(job: SeededJob) -> Figures:
    return invented(job.workload, job.purpose, job.nonce, job.batch_size)


def figures_of_job(job: SeededJob) -> Figures:
    return figures_of(job.workload.name, job.purpose, job.nonce, job.batch_size)


def honest_traces(result: Result, of: FiguresOf = figures_of_job) -> tuple[Trace, ...]:
    """What an honest engine sends: seeded short traces, and the long one as it is."""
    assert result.measurement is not None
    made = []
    by_purpose = {job.purpose: job for job in recomputation.jobs(result)}
    for precision in conformance.traced_precisions(result.cell.precision):
        for optimizer in conformance.TRACED:
            job = by_purpose[optimizer]
            right = of(job)
            made.append(
                Trace(
                    optimizer=optimizer,
                    batch_size=job.batch_size,
                    seed=job.key.seed,
                    losses=right.losses,
                    movements=right.movements,
                    **({} if precision == result.cell.precision else {"precision": precision}),
                )
            )
    long = [trace for trace in result.measurement.traces if trace.steps]
    return (*made, *long)


def seed_honestly(result: Result, of: FiguresOf = figures_of_job) -> Result:
    """The result as an honest agent sends it under its nonce."""
    nonce = recomputation.nonce_of(result)
    assert nonce is not None
    assert result.measurement is not None
    seed = nonces.seed_of(nonce, result.cell.workload_digest, "timed")
    result = with_traces(result.model_copy(update={"seed": seed}), honest_traces(result, of))
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


def under_nonce(result: Result) -> Result:
    """The result of :func:`tests.fakes.results.make_result` under a nonce, with the figures that
    :func:`invented` gives; what a test has changed of losses and movements stays.

    A result without a nonce gets a challenge.
    """
    measured, cell = result.measurement, result.cell
    if recomputation.nonce_of(result) is None:
        result = result.model_copy(update={"challenge": BOUND})
    nonce, digest = recomputation.nonce_of(result), cell.workload_digest
    assert nonce is not None
    if result.seed == seeded.DEFAULT_SEED:
        seed = nonces.seed_of(nonce, digest, "timed")
        result = result.model_copy(update={"seed": seed})
    if measured is None:
        return result
    workload = workload_named(cell.workload)
    moved = (0.5,) * len(list(trained_tensors(workload)))
    traces = []
    for trace in measured.traces:
        right = conformance.references().get((digest, trace.optimizer))
        if not trace.steps and right is not None and trace.seed == right.seed:
            changed = {
                "seed": nonces.seed_of(nonce, digest, trace.optimizer),
                "losses": trace.losses[: conformance.seeded_steps(workload, trace.optimizer)],
                "movements": trace.movements or moved,
            }
            trace = trace.model_copy(update=changed)
        traces.append(trace)
    return with_traces(result, traces)


def invented_known(result: Result) -> dict[JobKey, Recomputation]:
    """Statements about a bound result's jobs, as far as figures of public jobs are stored."""
    return {
        job.key: statement(job, "c" * 32, "tests", invented_for)
        for job in recomputation.jobs(result)
        if job.purpose != "timed"
        or (job.data == "generated" and _stored(job.workload, job.batch_size))
    }


def with_traces(result: Result, traces: Sequence[Trace]) -> Result:
    assert result.measurement is not None
    return with_measurement(result, result.measurement.model_copy(update={"traces": tuple(traces)}))


def with_measurement(result: Result, measured: object) -> Result:
    outcome = result.outcome.model_copy(update={"measurement": measured})
    return result.model_copy(update={"outcome": outcome})


def statement(job: SeededJob, challenge: str, origin: str, of: FiguresOf) -> Recomputation:
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
        data_digest="e" * 64 if job.data == "real" else None,
    )


def recomputed_for(result: Result, of: FiguresOf = figures_of_job) -> dict[JobKey, Recomputation]:
    """What a server would have said of the result's jobs."""
    assert result.challenge is not None
    origin = result.challenge.server_origin
    return {
        job.key: statement(job, result.challenge.id, origin, of)
        for job in recomputation.jobs(result)
    }
