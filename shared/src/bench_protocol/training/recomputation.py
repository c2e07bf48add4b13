"""Which jobs a result must have trained, and the server's signed recomputation of each.

Reading and comparing needs no NumPy. :mod:`bench_protocol.recompute` computes.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..base import strict_json
from ..base.errors import InvalidField
from ..base.units import Count, Finite, PositiveCount, Sha256, Share, Slug, Text, Wire
from ..catalogue import architectures, nonces
from ..catalogue.catalogue import CATALOGUE, workload_named
from ..catalogue.matrix import DataKind
from ..catalogue.nonces import Purpose
from ..catalogue.workloads import Workload
from ..payload.result import Result, RunId, Seed
from ..payload.witness import may_skip_updates
from . import conformance, long_trace, trace_limits, witness_verdict
from .conformance import TRACED, ConformanceVerdict, Reference
from .long_trace import LongVerdict
from .recomputed import Figures
from .witness_steps import is_affordable
from .witness_verdict import WitnessVerdict

RECOMPUTATION_PAYLOAD_TYPE = "application/vnd.trainmark.recomputation.v1+json"
# The setting ``frozen_weights`` of a workload whose frozen layers have the weights of its seed.
GENERATED_WEIGHTS = "generated"
# Suffix of the key of a job on real data.
REAL = "-real"
# Share of the workloads that is computed after the budget of a key is spent.
DRAWN_SHARE = 0.1


class JobKey(NamedTuple):
    """The inputs of a seeded job's figures. The seed stands for the workload too."""

    seed: str
    batch_size: int
    data: DataKind = "generated"

    @property
    def text(self) -> str:
        """The key as one word, which ends with ``REAL`` for a job on real data."""
        return f"{self.seed}-{self.batch_size}{REAL if self.data == 'real' else ''}"


@dataclass(frozen=True)
class SeededJob:
    """One job of a result: a trace, or the first steps of its timed session."""

    workload: Workload
    purpose: Purpose
    nonce: str
    batch_size: int
    data: DataKind = "generated"

    @property
    def key(self) -> JobKey:
        """The key under which the server stores the job."""
        seed = nonces.seed_of(self.nonce, self.workload.digest, self.purpose)
        return JobKey(seed, self.batch_size, self.data)


def trace_jobs(workload: Workload, nonce: str) -> tuple[SeededJob, ...]:
    """The traces that a nonce seeds: the short ones and, where a step is small, the long one."""
    purposes: tuple[Purpose, ...] = TRACED
    if conformance.is_long_traced(workload):
        purposes = (*TRACED, "long")
    batch_size = conformance.trace_batch_size(workload)
    return tuple(SeededJob(workload, purpose, nonce, batch_size) for purpose in purposes)


def trace_reference(job: SeededJob, figures: Figures) -> Reference:
    """The figures that a trace is compared with."""
    return Reference(job.batch_size, job.key.seed, figures)


class Tolerance(Wire):
    """Largest relative deviations on a CPU in float32: of the loss of each step, and of a
    movement."""

    losses: tuple[Finite, ...]
    movements: Finite


class Draw(Wire):
    """Why a job was not computed: the budget of its key was spent, and it was not drawn.

    It is drawn where the first eight bytes of SHA-256(``root`` || ``seed``) are below ``share`` of
    2**64. ``root``: of the log's checkpoint at ``size``, the first one with the job's first result;
    ``seed``: the sixteen bytes of the session's.
    """

    size: Count
    root: Sha256
    seed: Seed
    share: Share


class Recomputation(Wire):
    """One job of a challenge as the server computed it, signed by its challenge key.

    ``figures``: None where the job was not computed; then ``draw`` says why. Whether a result
    conforms follows from comparing it with the figures (:func:`verdict`), so results that come
    later need no further one. ``data_digest``: of the data that a session was computed on.
    """

    challenge: RunId
    nonce: Sha256
    workload: Slug
    workload_digest: Sha256
    purpose: Purpose
    batch_size: PositiveCount
    seed: Seed
    server_origin: Text
    verdict: Literal["computed", "not_drawn"]
    figures: Figures | None = None
    tolerance: Tolerance | None = None
    draw: Draw | None = None
    data: DataKind
    data_digest: Sha256 | None = None

    @property
    def key(self) -> JobKey:
        """The key of the job."""
        return JobKey(self.seed, self.batch_size, self.data)


Known = Mapping[JobKey, Recomputation]


def payload(said: Recomputation) -> bytes:
    """The bytes to sign."""
    return strict_json.dumps(said.model_dump(mode="json", exclude_none=True))


def parse(raw: bytes) -> Recomputation:
    """Read a recomputation.

    Raises:
        MalformedJson, InvalidField: it is none; its seed does not follow from its nonce; or its
            verdict, figures and draw contradict each other.
    """
    said = Recomputation.parse(raw)
    follows = nonces.seed_of(said.nonce, said.workload_digest, said.purpose)
    if said.seed != follows:
        raise InvalidField(f"seed must be {follows}", field="seed")
    _require_consistent(said)
    return said


def _require_consistent(said: Recomputation) -> None:
    """Require figures or a draw that leaves the job out; check what it says of the data."""
    draw, is_computed = said.draw, said.verdict == "computed"
    if said.data == "real" and said.purpose != "timed":
        raise InvalidField("only a session has real data", field="data")
    if (said.data_digest is not None) != (said.purpose == "timed" and is_computed):
        raise InvalidField(
            "data_digest must be there where a session was computed, and only there",
            field="data_digest",
        )
    if (said.figures is not None) != is_computed:
        raise InvalidField(
            "figures must be there where it was computed, and only there", field="figures"
        )
    if (draw is None) != is_computed:
        raise InvalidField(
            "draw must be there where it was not drawn, and only there", field="draw"
        )
    if draw is None:
        return
    follows = nonces.seed_of(said.nonce, said.workload_digest, "timed")
    if draw.seed != follows:
        raise InvalidField(f"draw.seed must be {follows}", field="draw.seed")
    if draw.share < DRAWN_SHARE:
        raise InvalidField(f"draw.share must be {DRAWN_SHARE} or more", field="draw.share")
    if is_drawn(draw):
        raise InvalidField("the draw picks the job, so it must be computed", field="draw")


def require_about(said: Recomputation, result: Result) -> None:
    """Check that a recomputation is of a job of a result.

    Raises:
        InvalidField: it is of another challenge, or of no job of this result.
    """
    challenge = result.challenge
    theirs = (said.challenge, said.nonce, said.server_origin)
    if challenge is None or theirs != (challenge.id, challenge.nonce, challenge.server_origin):
        raise InvalidField("it is of another challenge", field="challenge")
    job = next((job for job in jobs(result) if job.key == said.key), None)
    told = (said.workload, said.workload_digest, said.purpose)
    if job is None or told != (job.workload.name, job.workload.digest, job.purpose):
        raise InvalidField("it is of no job of this result", field="seed")


def tolerance(job: SeededJob) -> Tolerance | None:
    """The tolerance of a short trace; a session's depends on more (:mod:`.witness_verdict`)."""
    if job.purpose == "timed" or job.purpose == "long":
        return None
    steps = conformance.trace_steps(job.workload, job.purpose)
    table = trace_limits.TOLERANCES["cpu", "float32", job.purpose]
    losses = trace_limits.loss_limits(job.workload, table, job.purpose, steps)
    moved = trace_limits.movement_limit(job.workload, "cpu", "float32")
    return Tolerance(losses=losses, movements=moved)


def is_drawn(draw: Draw) -> bool:
    """Whether a draw picks its job. Nobody but the server can steer it: the root depends on the
    salt of the job's own result, which the server draws."""
    digest = hashlib.sha256(bytes.fromhex(draw.root + draw.seed)).digest()
    return int.from_bytes(digest[:8]) < draw.share * 2**64


def jobs(result: Result) -> tuple[SeededJob, ...]:
    """The seeded jobs of a result: its traces, and its session where its frozen weights are
    generated and its batch is not too large (:func:`.witness_steps.is_affordable`). Empty where the
    workload's definition has changed.
    """
    nonce, cell = result.seeding_nonce, result.cell
    workload = workload_named(cell.workload)
    if result.measurement is None or workload.digest != cell.workload_digest:
        return ()
    made = list(trace_jobs(workload, nonce))
    if has_generated_weights(result) and is_affordable(workload, cell.batch_size):
        made.append(SeededJob(workload, "timed", nonce, cell.batch_size, cell.data))
    return tuple(made)


def job_of(said: Recomputation) -> SeededJob | None:
    """Its job; None if the catalogue has no such workload."""
    for workload in CATALOGUE:
        if workload.digest == said.workload_digest:
            return SeededJob(
                workload,
                said.purpose,
                said.nonce,
                said.batch_size,
                said.key.data,
            )
    return None


def has_generated_weights(result: Result) -> bool:
    """Whether the frozen layers, if there are any, have the weights of the session's seed."""
    settings = result.measurement.recipe_settings if result.measurement else {}
    return settings.get("frozen_weights", GENERATED_WEIGHTS) == GENERATED_WEIGHTS


def session_is_generated(result: Result) -> bool:
    """Whether all that the session's first losses follow from is generated: no file is needed."""
    return result.cell.data == "generated" and has_generated_weights(result)


def is_seeded(result: Result) -> bool:
    """Whether the seeds of its traces and of its timed session follow from its nonce."""
    nonce, digest, measured = result.seeding_nonce, result.cell.workload_digest, result.measurement
    seeds = {nonces.seed_of(nonce, digest, purpose): purpose for purpose in nonces.PURPOSES}
    traces = [
        seeds.get(trace.seed) == ("long" if trace.steps else trace.optimizer)
        for trace in (measured.traces if measured else ())
    ]
    return seeds.get(result.seed) == "timed" and all(traces)


def verdict(
    result: Result, known: Known, architecture: str = architectures.MEASURED
) -> ConformanceVerdict | None:
    """Compare the short traces with their recomputation; None if it is not complete."""
    found = _references(result, known)
    references = {optimizer: found[optimizer] for optimizer in TRACED if optimizer in found}
    if result.measurement is None or len(references) < len(TRACED):
        return None
    workload, traces = workload_named(result.cell.workload), result.measurement.traces
    return conformance.verdict(result.cell, workload, traces, references, architecture)


def long_verdict(
    result: Result, known: Known, architecture: str = architectures.MEASURED
) -> LongVerdict | None:
    """Compare the long trace with its recomputation; None if there is none."""
    reference = _references(result, known).get("long")
    if result.measurement is None or reference is None:
        return None
    workload, traces = workload_named(result.cell.workload), result.measurement.traces
    return long_trace.judge(result.cell, workload, traces, reference, architecture)


def _references(result: Result, known: Known) -> dict[Purpose, Reference]:
    """The recomputed figures of its traces, by their purpose."""
    references: dict[Purpose, Reference] = {}
    for job in jobs(result):
        said = known.get(job.key)
        if job.purpose != "timed" and said is not None and said.figures is not None:
            references[job.purpose] = trace_reference(job, said.figures)
    return references


def session_verdict(
    result: Result, known: Known, architecture: str = architectures.MEASURED
) -> WitnessVerdict | None:
    """Compare the witness with the recomputation of its session; None without either."""
    job = next((job for job in jobs(result) if job.purpose == "timed"), None)
    measured = result.measurement
    said = None if job is None else known.get(job.key)
    if job is None or measured is None or said is None or said.figures is None:
        return None
    if (witness := measured.witness) is None or result.seed != job.key.seed:
        return None
    return witness_verdict.judge(
        result.cell,
        job.workload,
        witness.steps,
        witness.losses,
        said.figures.band,
        movements=witness.movements,
        architecture=architecture,
        rewound=witness.rewound,
        start=said.figures.start_loss,
        may_skip_updates=may_skip_updates(measured.recipe_settings, result.cell.precision),
    )
