"""Verdicts on readings, and ``bench-agent conformance``."""

import json
import secrets
from collections.abc import Callable

import pytest
from tests.fakes.engine import FakeEngine
from tests.fakes.results import make_cell, make_measurement
from tests.fakes.seeding import figures_of_job, witness_of
from tests.fakes.workloads import TINY, cell_of
from typer.testing import CliRunner

from bench_agent.base.messages import LOCAL_NONCE, ReadAnswer, ReadTask
from bench_agent.cli import main as cli
from bench_agent.run import conformance
from bench_agent.worker import main as worker
from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.witness import Witness
from bench_protocol.training.reading import parts
from bench_protocol.training.recomputation import SessionJob

WORKLOAD = workload_named("mnist-dense")
CELL = make_cell("mnist-dense")
ARGUMENTS = ["conformance", "--workload", "mnist-dense", "--framework", "mlx", "--recipe", "tuned"]


def right(times: float = 1.0) -> Witness:
    job = SessionJob(WORKLOAD, LOCAL_NONCE, CELL.batch_size)
    return witness_of(job, make_measurement(CELL), figures_of_job(job), times)


def test_readings_are_judged_by_their_recomputation() -> None:
    def judged(witness: Witness, nonce: str = LOCAL_NONCE) -> str:
        return conformance.judged(CELL, WORKLOAD, witness, nonce, {}).kind

    assert judged(right()) == "conformant"
    assert judged(right(1.01)) == "wrong_result"
    assert judged(right(), "8b" * 32) == "wrong_result"
    assert judged(right().model_copy(update={"readings": ()})) == "unverified"


def test_a_worker_reads_and_says_how_its_recipe_was_set_up(
    monkeypatch: pytest.MonkeyPatch, engine: FakeEngine
) -> None:
    monkeypatch.setattr(worker, "engine_named", lambda name: engine)
    engine.session.settings = {"loss_scale": "dynamic"}
    answer = worker.read(ReadTask(workload=TINY, cell=cell_of(TINY), nonce=LOCAL_NONCE))
    assert answer.witness is not None
    assert answer.recipe_settings == {"loss_scale": "dynamic"}


def test_the_command_really_reads() -> None:
    ended = CliRunner().invoke(cli.app, [*ARGUMENTS, "--json"])
    assert ended.exit_code == 0, ended.output
    document = json.loads(ended.stdout)
    (pair,) = document["pairs"]
    assert pair["verdict"] == "conformant", pair
    assert 0 < pair["largest_deviation"] < pair["limit"] < 0.1
    done = parts(WORKLOAD, WORKLOAD.batch_size, nonces.seed_of(document["nonce"], WORKLOAD.digest))
    assert len(pair["witness"]["readings"]) == len(done)
    assert pair["environment"]["packages"]["mlx"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            lambda: ReadAnswer(witness=right(1.01), environment=None),
            "wrong_result: the loss before the first step, without dropout, deviates by 0.01",
        ),
        (
            lambda: ReadAnswer(witness=None, environment=None, problem="crashed"),
            "failed: crashed",
        ),
    ],
)
def test_the_command_fails_with_a_pair(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[], ReadAnswer], says: str
) -> None:
    monkeypatch.setattr(conformance, "run_task", lambda *task: answer())
    monkeypatch.setattr(secrets, "token_hex", lambda count: LOCAL_NONCE)
    ended = CliRunner().invoke(cli.app, ARGUMENTS)
    assert ended.exit_code == 1
    assert says in ended.output
