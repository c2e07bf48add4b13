"""The trace inside a repeat, and ``bench-agent conformance``."""

import json
import secrets
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest
from tests.fakes.engine import FakeClock, FakeEngine, FakeSession
from tests.fakes.results import make_cell
from tests.fakes.seeding import figures_of, figures_of_job, traces_of
from tests.fakes.workloads import job_of
from typer.testing import CliRunner

from bench_agent.base.messages import LOCAL_NONCE, PhaseBegan, TraceAnswer
from bench_agent.cli import main as cli
from bench_agent.run import conformance as conformance_run
from bench_agent.worker import conformance_trace, witness
from bench_agent.worker import main as worker
from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Failed, Measured, Trace
from bench_protocol.training import conformance
from bench_protocol.training.witness_steps import witness_steps

WORKLOAD = workload_named("mnist-dense")
NONCE = LOCAL_NONCE
ARGUMENTS = ["conformance", "--workload", "mnist-dense", "--framework", "mlx", "--recipe", "tuned"]


def right_traces(factor: float = 1.0, nonce: str = NONCE) -> tuple[Trace, ...]:
    """The traces of a right engine, their losses off by a factor."""
    traces = traces_of(make_cell("mnist-dense"), nonce, figures_of_job)
    return tuple(
        trace.model_copy(update={"losses": tuple((loss or 0) * factor for loss in trace.losses)})
        for trace in traces
    )


@pytest.mark.parametrize(("factor", "conforms"), [(1.0, True), (1.001, False)])
def test_a_repeat_is_traced_after_it_was_timed(
    monkeypatch: pytest.MonkeyPatch, factor: float, conforms: bool
) -> None:
    clock = FakeClock()
    engine = FakeEngine(clock, FakeSession(clock))
    monkeypatch.setattr(worker, "engine_named", lambda name: engine)
    # The fake's first losses represent the timed part.
    timed = [0.5] * (len(witness_steps(WORKLOAD, WORKLOAD.batch_size)) + 1)
    right = right_traces(factor)
    # Then those of the steps after the timing, and of the rewound session, as in the timed part.
    losses = chain(timed, *(trace.losses for trace in right), repeat(0.5))
    monkeypatch.setattr(FakeSession, "loss", lambda self: next(losses))
    moved, read = (trace.movements for trace in right), witness.movements

    def movements(session: Any, workload: Workload, start: Any) -> Any:
        is_traced = workload.digest != WORKLOAD.digest
        return next(moved) if is_traced else read(session, workload, start)

    monkeypatch.setattr(witness, "movements", movements)
    messages: list[Any] = []
    job = job_of(WORKLOAD, warm_up_seconds=0.002, budget_seconds=0.01, block_seconds=0.001)
    ended = worker.work(job, messages.append, clock)
    phases = [message.phase for message in messages if isinstance(message, PhaseBegan)]
    assert phases.index("warm_up") < phases.index("timing") < phases.index("conformance")
    assert engine.session.rewinds == 1
    first = [1, *np.diff(witness_steps(WORKLOAD, WORKLOAD.batch_size))]
    assert engine.session.blocks[-len(first) :] == first
    traced = [*[1] * 6, 1, 17, 6]
    assert traced in [engine.session.blocks[n : n + 9] for n in range(len(engine.session.blocks))]
    outcome = ended.outcome
    assert outcome.measurement is not None
    assert outcome.measurement.traces == right
    if conforms:
        assert isinstance(outcome, Measured)
    else:
        assert isinstance(outcome, Failed)
        assert (outcome.kind, outcome.phase) == ("wrong_result", "conformance")


def test_traces_under_a_nonce_are_judged_by_a_recomputation() -> None:
    nonce, cell = "7a" * 32, make_cell("mnist-dense")
    right = [
        (optimizer, figures_of("mnist-dense", optimizer, nonce, 32))
        for optimizer in conformance.TRACED
    ]

    def judged(factor: float, nonce: str = nonce, workload: str = "mnist-dense") -> str:
        traces = tuple(
            Trace(
                optimizer=optimizer,
                batch_size=32,
                seed=nonces.seed_of("7a" * 32, WORKLOAD.digest, optimizer),
                losses=figures.losses,
                movements=tuple(factor * moved for moved in figures.movements),
            )
            for optimizer, figures in right
        )
        of = workload_named(workload)
        return conformance_trace.judged(cell, of, traces, "x86_64", nonce).kind

    assert judged(1.0) == "conformant"
    assert judged(1.01) == "wrong_result"
    assert judged(1.0, "8b" * 32) == "unverified"
    assert judged(1.01, workload="cifar100-vgg16") == "unverified"  # the server's work


def test_the_command_really_traces() -> None:
    ended = CliRunner().invoke(cli.app, [*ARGUMENTS, "--json"])
    assert ended.exit_code == 0, ended.output
    document = json.loads(ended.stdout)
    (pair,) = document["pairs"]
    assert pair["verdict"] == "conformant", pair
    assert pair["largest_deviation"] < pair["limit"] < 1e-3
    assert [trace["steps"] for trace in pair["traces"]] == [[], [], [1, 18, 24]]
    seeds = [nonces.seed_of(document["nonce"], WORKLOAD.digest, "sgd"), pair["traces"][0]["seed"]]
    assert len(set(seeds)) == 1
    assert pair["environment"]["packages"]["mlx"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            TraceAnswer(traces=right_traces(1.001), environment=None),
            "wrong_result: the sgd trace is off",
        ),
        (
            TraceAnswer(traces=(*right_traces()[:2], right_traces(1.01)[2]), environment=None),
            "wrong_result: the losses of the long trace are off by 0.01",
        ),
        (TraceAnswer(traces=(), environment=None, problem="crashed"), "failed: crashed"),
    ],
)
def test_the_command_fails_with_a_pair(
    monkeypatch: pytest.MonkeyPatch, answer: TraceAnswer, says: str
) -> None:
    monkeypatch.setattr(conformance_run, "run_task", lambda *task: answer)
    monkeypatch.setattr(secrets, "token_hex", lambda count: NONCE)
    ended = CliRunner().invoke(cli.app, ARGUMENTS)
    assert ended.exit_code == 1
    assert says in ended.output


def test_an_unknown_workload_is_wrong_usage() -> None:
    ended = CliRunner().invoke(cli.app, ["conformance", "--workload", "nonsense"])
    assert "mnist-dense" in str(ended.exception)
