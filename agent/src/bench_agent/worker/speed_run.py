"""The worker of a witnessed run: trains segments, keeps their end states, opens some.

It talks with its parent: once its framework is warm it asks for the seed, with the root of its
states for what to open. No state leaves this process but those.
"""

from collections.abc import Callable
from pathlib import Path

from bench_protocol.catalogue import seeded
from bench_protocol.recompute.segments import job_of, state_of
from bench_protocol.signing import merkle
from bench_protocol.training import speed_run
from bench_protocol.training.speed_run import OpenedState

from ..base.messages import SpeedReady, SpeedReply, SpeedRooted, SpeedRunJob
from ..base.speed_run import WARM_UP_STEPS, segments_for
from ..engines.seam import Data, Engine, Session

Ask = Callable[[SpeedReady | SpeedRooted], SpeedReply]
Timed = Callable[[Callable[[], object]], int]


def run(engine: Engine, job: SpeedRunJob, ask: Ask, timed: Timed) -> None:
    """Train the job's witnessed run, and write the opened states with their proofs.

    Args:
        ask: sends a question to the parent and returns its reply.
        timed: runs a function and returns its nanoseconds.
    """
    engine.load(speed_run.workload(), job.cell)
    segments = job.segments or segments_for(_step_ns(engine, job, timed))
    seed = ask(SpeedReady(segments=segments)).seed or seeded.DEFAULT_SEED
    states = States()
    session = _open(engine, job, seed)
    try:
        training_ns = timed(lambda: train(session, seed, segments, states))
    finally:
        session.close()
    rooted = SpeedRooted(segments=segments, root=states.root.hex(), training_ns=max(1, training_ns))
    for segment in ask(rooted).segments:
        path = Path(job.folder) / f"{segment}.state"
        path.write_bytes(states.opened(segment).body)


class States:
    """The end states of segments, and their Merkle tree, which grows with them."""

    def __init__(self) -> None:
        self._states: list[bytes] = []
        self._frontier = merkle.Frontier()
        self._nodes: dict[merkle.Node, bytes] = {}

    def add(self, state: bytes) -> bytes:
        """Append a state; its leaf hash."""
        leaf = merkle.leaf_hash(state)
        self._states.append(state)
        self._nodes |= dict(self._frontier.add(leaf))
        return leaf

    def __len__(self) -> int:
        return len(self._states)

    @property
    def root(self) -> bytes:
        return self._frontier.root

    def opened(self, segment: int) -> OpenedState:
        """What is sent of a segment."""
        state, proof = self._states[segment], self._proof(segment)
        if segment == 0:
            return OpenedState(state, proof)
        before = self._nodes[0, segment - 1]
        return OpenedState(state, proof, before, self._proof(segment - 1))

    def _proof(self, segment: int) -> tuple[bytes, ...]:
        ranges = merkle.inclusion_ranges(segment, len(self._states))
        return tuple(merkle.range_hash(self._nodes, *each) for each in ranges)


def train(session: Session, seed: str, segments: int, states: States) -> None:
    """Train segments one after the other, each from the weights that its start seed gives."""
    leaf = b""
    for segment in range(segments):
        if segment:
            start = speed_run.start_seed(seed, segment, leaf)
            session.rewind(job_of(seed, start).weights())
        session.train_block(speed_run.STEPS)
        session.sync()
        leaf = states.add(state_of(session.trained_parameters()))


def _step_ns(engine: Engine, job: SpeedRunJob, timed: Timed) -> float:
    """The time of a step, from a session that trains the same job under another seed."""
    session = _open(engine, job, seeded.DEFAULT_SEED)
    first, then = WARM_UP_STEPS
    try:
        _block(session, first)
        return timed(lambda: _block(session, then)) / then
    finally:
        session.close()


def _block(session: Session, steps: int) -> None:
    session.train_block(steps)
    session.sync()


def _open(engine: Engine, job: SpeedRunJob, seed: str) -> Session:
    segment = job_of(seed)
    workload = segment.workload
    train_x, train_y = seeded.generated_data(workload.data_set, "train", seed=seed)
    test_x, test_y = seeded.generated_data(workload.data_set, "test", 1, seed)
    epochs = -(-speed_run.STEPS // workload.steps_per_epoch(speed_run.BATCH_SIZE))
    first, *later = (seeded.order(len(train_y), epoch, seed) for epoch in range(epochs))
    data = Data(train_x, train_y, test_x, test_y, first, tuple(later))
    return engine.open(workload, job.cell, segment.weights(), data)
