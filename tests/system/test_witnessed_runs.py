"""Sixty real witnessed runs of each prover: who is caught at eight openings, and who never is.

An engine trains, the server's own judge recomputes in float64; TF32 and bfloat16 are emulated by
rounding the inputs of products. ``WITNESSED_RUNS``: the number of runs of a prover.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engines.conftest import installed
from tests.fakes import loopback, results, speed_prover
from tests.fakes.loopback import NO_LIMITS, Scene
from tests.fakes.speed_prover import Prover
from tests.fakes.speed_runs import Run

from bench_agent.base.messages import SpeedRunJob
from bench_agent.engines.seam import Engine
from bench_agent.worker import speed_run as worker
from bench_agent.worker.speed_run import States
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.recompute.segments import job_of, state_of
from bench_protocol.training import speed_run
from bench_server.recompute.speed_runs import Judge

pytestmark = pytest.mark.long
RUNS = int(os.environ.get("WITNESSED_RUNS", "60"))
FRAMEWORK = "torch"
OPENINGS = 8
# Of 15 segments, 3 are left out: a fifth. 8 openings show one of them in 92 % of runs.
SEGMENTS, LEFT_OUT = 15, 3
SETTINGS = NO_LIMITS.model_copy(update={"witness_openings": OPENINGS, "witness_runs_a_day": 1000})


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr("bench_server.ingest.speed_runs.UNPROVEN", RUNS + 1)
    with loopback.scene(f"sqlite:///{tmp_path / 'server.db'}", SETTINGS) as made:
        made.enroll(results.private_key())
        yield made


@pytest.fixture
def engine() -> Engine:
    return installed(FRAMEWORK)


def trained(engine: Engine, seed: str, segments: int, left_out: tuple[int, ...] = ()) -> States:
    """The states of an engine's run. A segment that is left out ends where it began."""
    workload = speed_run.workload()
    cell = Cell(
        workload=workload.name,
        workload_digest=workload.digest,
        framework=FRAMEWORK,
        device=Device(kind="cpu"),
        recipe="tuned",
        batch_size=speed_run.BATCH_SIZE,
        precision="float32",
        data="generated",
    )
    engine.load(workload, cell)
    session = worker._open(engine, SpeedRunJob(cell=cell, folder=""), seed)
    states, leaf = States(), b""
    try:
        for segment in range(segments):
            start = job_of(seed, speed_run.start_seed(seed, segment, leaf)).weights()
            if segment:
                session.rewind(start)
            if segment not in left_out:
                session.train_block(speed_run.STEPS)
                session.sync()
            leaf = states.add(state_of(session.trained_parameters()))
    finally:
        session.close()
    return states


def outcomes(scene: Scene, what: str, train: Callable[[str], States]) -> list[str]:
    """The states of runs that were trained, sent and judged."""
    found: list[str] = []
    began = time.perf_counter()
    judge = Judge(scene.store, loopback.AUTHORITY, lambda: scene.now)
    for _ in range(RUNS):
        run = Run(scene.http)
        run.begin()
        run.states = train(run.seed)
        run.send()
        assert judge.step()
        found.append(run.state())
        caught, seconds = found.count("refuted"), time.perf_counter() - began
        print(f"{what}: {caught} of {len(found)} refuted, {seconds:.0f} s", flush=True)
    return found


def test_an_honest_prover_is_never_refuted(scene: Scene, engine: Engine) -> None:
    found = outcomes(scene, "honest", lambda seed: trained(engine, seed, OPENINGS))
    assert found == ["witnessed"] * RUNS


def test_a_prover_that_leaves_out_a_fifth_is_caught(scene: Scene, engine: Engine) -> None:
    chance = random.Random(1)

    def train(seed: str) -> States:
        left_out = chance.sample(range(SEGMENTS), LEFT_OUT)
        return trained(engine, seed, SEGMENTS, tuple(left_out))

    found = outcomes(scene, "a fifth left out", train)
    assert found.count("refuted") >= RUNS * 50 // 60


@pytest.mark.parametrize("cut", [speed_prover.tf32, speed_prover.bfloat16])
def test_less_precision_is_always_caught(scene: Scene, cut: speed_prover.Rounding) -> None:
    def train(seed: str) -> States:
        return Prover(seed).states(speed_run.LEAST_SEGMENTS, cut=cut)

    assert outcomes(scene, cut.__name__, train) == ["refuted"] * RUNS
