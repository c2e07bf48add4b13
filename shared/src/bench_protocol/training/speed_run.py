"""The witnessed run: its job, what agent and server sign, and what is drawn to be opened.

The server gives a beacon (at R0), the agent trains N segments of :data:`STEPS` steps and posts the
root of their end states (R1); the server then reveals what it drew the opened segments from, and
trains those again. Samples over R1 - R0 on the server's clock is the speed.

Every segment begins with new weights, whose seed follows from the state before: float32 stays close
to float64 only near a start (docs/adr/0018), and no segment can begin before the one before has
ended. Nothing here needs NumPy; :mod:`.recompute.segments` computes. docs/protocol.md, section
"Witnessed run".
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from statistics import median
from typing import Annotated, Self

from pydantic import Field, model_validator

from ..base.errors import InvalidField
from ..base.units import DurationNs, Finite, PositiveCount, Sha256, Slug, Text, UtcTime, Wire
from ..catalogue.catalogue import workload_named
from ..catalogue.layers import Dropout
from ..catalogue.matrix import DeviceKind
from ..catalogue.workloads import SGD, Workload
from ..payload import acts
from ..payload.result import RunId
from ..payload.witness import trained_tensors
from ..signing import merkle

START_PAYLOAD_TYPE = "application/vnd.trainmark.speed-run-start.v1+json"
ROOT_PAYLOAD_TYPE = "application/vnd.trainmark.speed-run-root.v1+json"
STATEMENT_PAYLOAD_TYPE = "application/vnd.trainmark.speed-run.v1+json"
WORKLOAD = "fashion-mlp"
BATCH_SIZE = 1024
STEPS = 20
SAMPLES_PER_SEGMENT = BATCH_SIZE * STEPS
MOST_SEGMENTS = 512
OPENINGS = (4, 8)
# Distance over movement of each opened segment, and the median of all (docs/results.md): one step
# left out gives 4e-2, TF32 7e-4 and more in every segment, float32 2e-4 at most in most of them.
LIMIT = 1e-2
MEDIAN_LIMIT = 4e-4
LEAST_SEGMENTS = 4
HASH_BYTES = merkle.HASH_BYTES
Segments = Annotated[int, Field(ge=LEAST_SEGMENTS, le=MOST_SEGMENTS)]


class SpeedRunStart(Wire):
    """The request of a beacon, signed by the key. ``challenge``, ``nonce``: of a fresh challenge of
    this key, which has one witnessed run at most."""

    challenge: RunId
    nonce: Sha256
    key_id: Sha256
    server_origin: Text


class SpeedRunRoot(Wire):
    """The commitment to all states, signed by the key.

    ``root``: RFC 6962 root of the end states of ``segments`` segments. ``framework``, ``device``,
    ``machine_hash`` and ``training_ns``, the agent's own time of the training, are claims.
    """

    challenge: RunId
    beacon: Sha256
    key_id: Sha256
    server_origin: Text
    root: Sha256
    segments: Segments
    framework: Slug
    device: DeviceKind
    machine_hash: Sha256
    training_ns: DurationNs


class Opening(Wire):
    """An opened segment: ``distance`` of its end from the recomputed one, over the recomputed
    movement."""

    segment: Annotated[int, Field(ge=0, lt=MOST_SEGMENTS)]
    distance: Finite


Openings = Annotated[
    tuple[Opening, ...], Field(min_length=LEAST_SEGMENTS, max_length=max(OPENINGS))
]


class SpeedRun(Wire):
    """The server's statement, signed by its challenge key: key ``key_id`` had between ``begun_at``
    (R0) and ``committed_at`` (R1) a machine that trained the job at no less than
    ``samples_per_second``, a whole number.

    ``draw``: what the openings were drawn from beside the root; its SHA-256 was given at R0.
    ``workload_digest``: of :func:`workload`. The other fields are those of :class:`SpeedRunRoot`.
    """

    challenge: RunId
    nonce: Sha256
    beacon: Sha256
    draw: Sha256
    key_id: Sha256
    server_origin: Text
    workload_digest: Sha256
    root: Sha256
    segments: Segments
    begun_at: UtcTime
    committed_at: UtcTime
    samples_per_second: PositiveCount
    openings: Annotated[
        tuple[Opening, ...], Field(min_length=LEAST_SEGMENTS, max_length=max(OPENINGS))
    ]
    framework: Slug
    device: DeviceKind
    machine_hash: Sha256
    training_ns: DurationNs

    @model_validator(mode="after")
    def _follows(self) -> Self:
        begun, committed = map(datetime.fromisoformat, (self.begun_at, self.committed_at))
        if self.samples_per_second != samples_per_second(self.segments, begun, committed):
            raise ValueError("samples_per_second does not follow from segments and times")
        shown = tuple(opening.segment for opening in self.openings)
        if shown not in {drawn(self.root, self.draw, self.segments, n) for n in OPENINGS}:
            raise ValueError("openings do not follow from root and draw")
        if reason := why_refuted(self.openings):
            raise ValueError(reason)
        return self

    @property
    def sentence(self) -> str:
        """What it says."""
        return (
            f"by the server's clock, a machine of key {self.key_id} trained at least "
            f"{self.samples_per_second:,} samples/s from {self.begun_at} to {self.committed_at}: "
            f"{SETUP_WORDS}"
        )


# The set-up of every witnessed run, which no board has.
SETUP_WORDS = f"{WORKLOAD} at batch {BATCH_SIZE:,} without dropout"


@cache
def workload() -> Workload:
    """fashion-mlp without its dropout layer, on data of one pattern a class, under plain SGD at
    0.05, whose only state is the weights."""
    trained = workload_named(WORKLOAD)
    fields = {name: getattr(trained, name) for name in Workload.model_fields}
    fields["layers"] = tuple(layer for layer in trained.layers if not isinstance(layer, Dropout))
    classes = trained.data_set.classes
    fields["data_set"] = trained.data_set.model_copy(update={"patterns": classes})
    fields["optimizer"] = SGD(learning_rate=0.05, momentum=0.0)
    return Workload(**fields)


def seed_of(nonce: str, beacon: str) -> str:
    """The seed of orders, data and the first segment's weights: the first 32 hex digits of
    ``SHA-256("trainmark/speed-run/v1/" nonce "/" beacon)``."""
    text = f"trainmark/speed-run/v1/{nonce}/{beacon}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def start_seed(seed: str, segment: int, before: bytes) -> str:
    """The seed of the weights that a segment begins with: the run's for the first segment, else the
    first 32 hex digits of ``SHA-256("trainmark/speed-run/v1/" seed "/" segment "/" before)``.

    Args:
        before: leaf hash of the end state of the segment before; in the text in hex.
    """
    if segment == 0:
        return seed
    text = f"trainmark/speed-run/v1/{seed}/{segment}/{before.hex()}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def commitment_of(draw: str) -> str:
    """What the server gives at R0 of the draw: SHA-256 of its bytes, in hex."""
    return hashlib.sha256(bytes.fromhex(draw)).hexdigest()


def drawn(root: str, draw: str, segments: int, openings: int) -> tuple[int, ...]:
    """The segments to open, in rising order: all of them if there are no more than ``openings``.

    Number k = 0, 1, ... is the first eight bytes (big-endian) of SHA-256(root || draw || k), k as
    four bytes, modulo ``segments``; numbers drawn before are skipped.
    """
    chosen: set[int] = set()
    number = 0
    while len(chosen) < min(openings, segments):
        text = bytes.fromhex(root + draw) + number.to_bytes(4)
        chosen.add(int.from_bytes(hashlib.sha256(text).digest()[:8]) % segments)
        number += 1
    return tuple(sorted(chosen))


def state_bytes() -> int:
    """Length of a state: the trained tensors in the catalogue's order and layouts, float32,
    little-endian, row by row."""
    return 4 * sum(math.prod(tensor.shape) for tensor in trained_tensors(workload()))


@dataclass(frozen=True)
class OpenedState:
    """What is sent of an opened segment: its end state with its proof and, except for the first
    segment, the leaf hash of the state before with its proof."""

    state: bytes
    proof: tuple[bytes, ...]
    before: bytes = b""
    before_proof: tuple[bytes, ...] = ()

    @property
    def body(self) -> bytes:
        """The bytes to send."""
        return b"".join((*self.proof, self.before, *self.before_proof, self.state))


def opened_bytes(segment: int, segments: int) -> int:
    """Length of the body of an opened segment."""
    hashes = len(merkle.inclusion_ranges(segment, segments))
    if segment:
        hashes += 1 + len(merkle.inclusion_ranges(segment - 1, segments))
    return hashes * HASH_BYTES + state_bytes()


def read_opened(body: bytes, segment: int, segments: int, root: bytes) -> OpenedState:
    """Read an opened segment and verify that its states are in the tree.

    Raises:
        InvalidField: the body has the wrong length.
        InvalidProof: the root does not commit to a state.
    """
    expected = opened_bytes(segment, segments)
    if len(body) != expected:
        raise InvalidField(
            f"the body of segment {segment} has {len(body)} bytes, not {expected}", field="body"
        )
    hashes = [body[at : at + HASH_BYTES] for at in range(0, expected - state_bytes(), HASH_BYTES)]
    own = len(merkle.inclusion_ranges(segment, segments))
    before = hashes[own] if segment else b""
    opened = OpenedState(
        body[len(hashes) * HASH_BYTES :], tuple(hashes[:own]), before, tuple(hashes[own + 1 :])
    )
    leaf = merkle.leaf_hash(opened.state)
    merkle.verify_inclusion(leaf, segment, segments, opened.proof, root)
    if segment:
        merkle.verify_inclusion(before, segment - 1, segments, opened.before_proof, root)
    return opened


def why_refuted(openings: Sequence[Opening]) -> str | None:
    """Why opened segments are not what the job gives, or None."""
    worst = max(openings, key=lambda opening: opening.distance)
    if not 0 <= worst.distance <= LIMIT:
        return (
            f"segment {worst.segment} is not what this job gives: its end is {worst.distance:.1e} "
            f"of its movement away, at most {LIMIT:.0e} is allowed"
        )
    middle = median(opening.distance for opening in openings)
    if middle > MEDIAN_LIMIT:
        return (
            f"the opened segments were not computed in float32: their ends are {middle:.1e} of "
            f"their movement away in the median, at most {MEDIAN_LIMIT:.0e} is allowed"
        )
    return None


def samples_per_second(segments: int, begun: datetime, committed: datetime) -> int:
    """Samples over the time between two moments, rounded down, at least 1."""
    elapsed = committed - begun
    microseconds = max(1, (elapsed.days * 86_400 + elapsed.seconds) * 10**6 + elapsed.microseconds)
    return max(1, segments * SAMPLES_PER_SEGMENT * 10**6 // microseconds)


def parse(raw: bytes) -> SpeedRun:
    """Read a statement.

    Raises:
        MalformedJson, InvalidField: it is none, or its speed or openings do not follow.
    """
    return acts.parse(SpeedRun, raw)
