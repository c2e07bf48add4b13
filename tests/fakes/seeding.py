"""Results whose seed follows from their nonce.

Figures are really recomputed, once for each seed (small workloads take up to 5 s), or invented
where a test is about something else: then the worker of the server is given the same inventions.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from bench_protocol.catalogue import nonces, seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Challenge, Measurement, Result
from bench_protocol.payload.witness import Reading, Witness, trained_tensors
from bench_protocol.real_data.parse import Split
from bench_protocol.recompute import figures, generated_digest
from bench_protocol.training import recomputation
from bench_protocol.training.reading import parts, parts_recomputed
from bench_protocol.training.recomputation import JobKey, Recomputation, SessionJob
from bench_protocol.training.recomputed import Figures, Recomputed

FiguresOf = Callable[[SessionJob], Figures]


@cache
def figures_of(workload: str, nonce: str, batch_size: int) -> Figures:
    return figures(workload_named(workload), nonce, batch_size)


def invented(workload: Workload, nonce: str, batch_size: int) -> Figures:
    """Losses fall from about that of guessing, in a range where Dropout draws masks."""
    start = math.log(workload.data_set.classes) * (1 + 0.001 * math.log2(batch_size))
    moved = (0.5,) * len(list(trained_tensors(workload)))
    seed = nonces.seed_of(nonce, workload.digest)
    made = []
    for part in parts_recomputed(parts(workload, batch_size, seed)):
        loss, draws = start * 0.999**part.steps, part.kind == "masks"
        high = {"loss_high": 1.02 * loss, "movements_high": tuple(1.1 * m for m in moved)}
        made.append(Recomputed(loss=loss, movements=moved, **(high if draws else {})))
    return Figures(start_loss=start, readings=tuple(made))


def invented_for(job: SessionJob) -> Figures:
    return invented(job.workload, job.nonce, job.batch_size)


def figures_of_job(job: SessionJob) -> Figures:
    return figures_of(job.workload.name, job.nonce, job.batch_size)


def witness_of(
    job: SessionJob, measured: Measurement, right: Figures, times: float = 1.0
) -> Witness:
    """Each step of a reading takes as long as one of a block; losses are ``times`` as large."""
    blocks, tensors = measured.blocks, list(trained_tensors(job.workload))
    step_ns = sorted(blocks.durations_ns)[len(blocks.durations_ns) // 2] / blocks.steps_per_block
    readings: list[Reading] = []
    done = parts(job.workload, job.batch_size, job.seed)
    rights = dict(zip(parts_recomputed(done), right.readings, strict=True))
    for number, part in enumerate(done):
        loss, movements = 0.5, tuple(0.3 + 0.01 * number for _ in tensors)
        if part in rights:
            loss, movements = times * rights[part].loss, rights[part].movements
        if part in done[number + 1 :]:  # the other masks have the upper end
            movements = rights[part].movements_high if part in rights else movements
        calls = part.calls(blocks.steps_per_block)
        durations_ns = tuple(max(1, round(count * step_ns)) for count in calls)
        readings.append(Reading(loss=loss, movements=movements, durations_ns=durations_ns))
    return Witness(
        step_count=1 + blocks.warm_up_steps + blocks.steps,
        counted_by="optimizer",
        movements=(0.5,) * len(tensors),
        start_loss=times * right.start_loss,
        readings=tuple(readings),
    )


def seed_honestly(result: Result, of: FiguresOf = figures_of_job) -> Result:
    seed = nonces.seed_of(result.seeding_nonce, result.cell.workload_digest)
    result, job = result.model_copy(update={"seed": seed}), recomputation.job(result)
    measured = result.measurement
    if job is None or job.data != "generated" or measured is None or measured.witness is None:
        return result
    told = witness_of(job, measured, of(job))
    kept = {"step_count": measured.witness.step_count, "movements": measured.witness.movements}
    told = told.model_copy(update=kept)
    return with_measurement(result, measured.model_copy(update={"witness": told}))


def train_on(result: Result, splits: tuple[Split, Split], times: float = 1.0) -> Result:
    """As an agent trained on the train and test samples; losses are ``times`` as large."""
    job, measured = recomputation.job(result), result.measurement
    assert job is not None
    assert measured is not None
    right = figures(job.workload, job.nonce, job.batch_size, splits[0])
    told = witness_of(job, measured, right, times)
    changes = {"witness": told, "data_digest": seeded.data_digest(*splits)}
    return with_measurement(result, measured.model_copy(update=changes))


BOUND = Challenge(id="c" * 32, nonce="c0" * 32, server_origin="tests")
# The nonce of results that no test gives a nonce or a challenge.
OWN_NONCE = "a0" * 32


def under_nonce(result: Result) -> Result:
    """The result of :func:`tests.fakes.results.make_result`, whose seed follows from ``OWN_NONCE``,
    with the seed and the readings of its challenge or its nonce, by invented figures. A seed that a
    test has changed stays, and so does what a test has changed of a reading.

    A result with ``OWN_NONCE`` itself gets a challenge.
    """
    if result.nonce == OWN_NONCE:
        result = result.model_copy(update={"challenge": BOUND, "nonce": None})
    own = nonces.seed_of(OWN_NONCE, result.cell.workload_digest)
    if result.seed != own:
        return result
    new = nonces.seed_of(result.seeding_nonce, result.cell.workload_digest)
    result = result.model_copy(update={"seed": new})
    job, measured = recomputation.job(result), result.measurement
    if job is None or measured is None or measured.witness is None:
        return result
    old_job = replace(job, nonce=OWN_NONCE)
    made = [witness_of(one, measured, invented_for(one)).readings for one in (old_job, job)]
    readings = zip(measured.witness.readings, *made, strict=False)
    told = {"readings": tuple(_moved(*one) for one in readings)}
    changed = {"witness": measured.witness.model_copy(update=told)}
    return with_measurement(result, measured.model_copy(update=changed))


def _moved(told: Reading, old: Reading, new: Reading) -> Reading:
    """A reading under another nonce; what a test changed of loss and calls stays in proportion."""
    changes: dict[str, object] = {}
    if told.loss is None or old.loss is None or new.loss is None:
        changes["loss"] = None
    elif told.loss != old.loss:
        changes["loss"] = new.loss * (told.loss / old.loss)
    if told.movements != old.movements:
        changes["movements"] = told.movements
    if len(told.durations_ns) != len(old.durations_ns):
        changes["durations_ns"] = told.durations_ns
    elif told.durations_ns != old.durations_ns:
        first, *_, last = (*told.durations_ns, told.durations_ns[-1])
        times = first / old.durations_ns[0], last / old.durations_ns[-1]
        durations_ns = (round(times[bool(n)] * ns) for n, ns in enumerate(new.durations_ns))
        changes["durations_ns"] = tuple(durations_ns)
    return new.model_copy(update=changes)


def recomputed_for(result: Result, of: FiguresOf) -> dict[JobKey, Recomputation]:
    """What a server would have said of the result's session on generated data."""
    job = recomputation.job(result)
    if job is None or job.data != "generated":
        return {}
    return {job.key: recomputed(job, BOUND.id, BOUND.server_origin, of)}


def with_measurement(result: Result, measured: object) -> Result:
    outcome = result.outcome.model_copy(update={"measurement": measured})
    return result.model_copy(update={"outcome": outcome})


def recomputed(job: SessionJob, challenge: str, origin: str, of: FiguresOf) -> Recomputation:
    digest = "e" * 64 if job.data == "real" else generated_digest(job.workload.data_set)
    return Recomputation(
        challenge=challenge,
        nonce=job.nonce,
        workload=job.workload.name,
        workload_digest=job.workload.digest,
        batch_size=job.batch_size,
        seed=job.seed,
        server_origin=origin,
        verdict="computed",
        figures=of(job),
        data=job.data,
        data_digest=digest,
    )
