"""Which job a result must have trained, and the server's signed recomputation of it.

Reading and comparing needs no NumPy. :mod:`bench_protocol.recompute` computes.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..base import strict_json
from ..base.errors import InvalidField
from ..base.units import Count, PositiveCount, Sha256, Share, Slug, Text, Wire
from ..catalogue import architectures, nonces
from ..catalogue.catalogue import CATALOGUE, workload_named
from ..catalogue.matrix import DataKind
from ..catalogue.workloads import Workload
from ..payload.result import Result, RunId, Seed
from . import witness_verdict
from .reading import is_affordable
from .recomputed import Figures
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
class SessionJob:
    """The readings of a session whose seed follows from a nonce."""

    workload: Workload
    nonce: str
    batch_size: int
    data: DataKind = "generated"

    @property
    def seed(self) -> str:
        return nonces.seed_of(self.nonce, self.workload.digest)

    @property
    def key(self) -> JobKey:
        return JobKey(self.seed, self.batch_size, self.data)


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
    """The server's recomputation of the session of a challenge, signed by its challenge key.

    ``figures``: None where the job was not computed; then ``draw`` says why. Whether a result
    conforms follows from comparing it with the figures (:func:`verdict`), so results that come
    later need no further one. ``data_digest``: of the data that it was computed on.
    """

    challenge: RunId
    nonce: Sha256
    workload: Slug
    workload_digest: Sha256
    batch_size: PositiveCount
    seed: Seed
    server_origin: Text
    verdict: Literal["computed", "not_drawn"]
    figures: Figures | None = None
    draw: Draw | None = None
    data: DataKind
    data_digest: Sha256 | None = None

    @property
    def key(self) -> JobKey:
        return JobKey(self.seed, self.batch_size, self.data)


Known = Mapping[JobKey, Recomputation]


def payload(said: Recomputation) -> bytes:
    return strict_json.dumps(said.model_dump(mode="json", exclude_none=True))


def parse(raw: bytes) -> Recomputation:
    """Read a recomputation.

    Raises:
        MalformedJson, InvalidField: it is none; its seed does not follow from its nonce; or its
            verdict, figures and draw contradict each other.
    """
    said = Recomputation.parse(raw)
    follows = nonces.seed_of(said.nonce, said.workload_digest)
    if said.seed != follows:
        raise InvalidField(f"seed must be {follows}", field="seed")
    _require_consistent(said)
    return said


def _require_consistent(said: Recomputation) -> None:
    """Require figures or a draw that leaves the job out; check what it says of the data."""
    draw = said.draw
    there = {"data_digest": "computed", "figures": "computed", "draw": "not_drawn"}
    for field, verdict in there.items():
        if (getattr(said, field) is not None) != (said.verdict == verdict):
            where = verdict.replace("_", " ")
            message = f"{field} must be there where it was {where}, and only there"
            raise InvalidField(message, field=field)
    if draw is None:
        return
    if draw.seed != said.seed:
        raise InvalidField(f"draw.seed must be {said.seed}", field="draw.seed")
    if draw.share < DRAWN_SHARE:
        raise InvalidField(f"draw.share must be {DRAWN_SHARE} or more", field="draw.share")
    if is_drawn(draw):
        raise InvalidField("the draw picks the job, so it must be computed", field="draw")


def require_about(said: Recomputation, result: Result) -> None:
    """Check that a recomputation is about the session of a result.

    Raises:
        InvalidField: it is about another challenge, or about no job of this result.
    """
    challenge = result.challenge
    theirs = (said.challenge, said.nonce, said.server_origin)
    if challenge is None or theirs != (challenge.id, challenge.nonce, challenge.server_origin):
        raise InvalidField("the recomputation is about another challenge", field="challenge")
    seeded = job(result)
    told = (said.workload, said.workload_digest, said.key)
    if seeded is None or told != (seeded.workload.name, seeded.workload.digest, seeded.key):
        raise InvalidField("the recomputation is not of this result's session", field="seed")


def is_drawn(draw: Draw) -> bool:
    """Whether a draw picks its job. Nobody but the server can steer it: the root depends on the
    salt of the job's own result, which the server draws."""
    digest = hashlib.sha256(bytes.fromhex(draw.root + draw.seed)).digest()
    return int.from_bytes(digest[:8]) < draw.share * 2**64


def job(result: Result) -> SessionJob | None:
    """The seeded job of a result, if it can be recomputed: its frozen weights are generated, its
    batch is not too large (:func:`.reading.is_affordable`), and the workload's definition has not
    changed."""
    cell, workload = result.cell, workload_named(result.cell.workload)
    if result.measurement is None or workload.digest != cell.workload_digest:
        return None
    if not (has_generated_weights(result) and is_affordable(workload, cell.batch_size)):
        return None
    return SessionJob(workload, result.seeding_nonce, cell.batch_size, cell.data)


def job_of(said: Recomputation) -> SessionJob | None:
    """Return the job that was recomputed; None if the catalogue has no such workload."""
    for workload in CATALOGUE:
        if workload.digest == said.workload_digest:
            return SessionJob(workload, said.nonce, said.batch_size, said.data)
    return None


def has_generated_weights(result: Result) -> bool:
    """Whether the frozen layers of the workload, if any, have the weights of the session's seed."""
    if not workload_named(result.cell.workload).frozen_layers:
        return True
    settings = result.measurement.recipe_settings if result.measurement else {}
    return settings.get("frozen_weights", GENERATED_WEIGHTS) == GENERATED_WEIGHTS


def session_is_generated(result: Result) -> bool:
    """Whether all that the session's losses follow from is generated: no file is needed."""
    return result.cell.data == "generated" and has_generated_weights(result)


def is_seeded(result: Result) -> bool:
    """Whether the seed of its session follows from its nonce."""
    return result.seed == nonces.seed_of(result.seeding_nonce, result.cell.workload_digest)


def verdict(
    result: Result, known: Known, architecture: str = architectures.MEASURED
) -> WitnessVerdict | None:
    """Compare the witness with the recomputation of its session; None without either."""
    seeded, measured = job(result), result.measurement
    said = None if seeded is None else known.get(seeded.key)
    if seeded is None or measured is None or said is None or said.figures is None:
        return None
    if measured.witness is None or result.seed != seeded.seed:
        return None
    return witness_verdict.judge(
        result.cell,
        seeded.workload,
        result.seed,
        measured.witness,
        said.figures,
        settings=measured.recipe_settings,
        architecture=architecture,
    )
