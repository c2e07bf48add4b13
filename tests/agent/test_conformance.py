"""The trace inside a repeat, and ``bench-agent conformance``."""

import json
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest
from tests.fakes.engine import FakeClock, FakeEngine, FakeSession
from tests.fakes.results import make_cell
from tests.fakes.seeding import figures_of
from tests.fakes.workloads import job_of, small
from typer.testing import CliRunner

from bench_agent.base.messages import PhaseBegan, TraceAnswer
from bench_agent.cli import main as cli
from bench_agent.run import conformance as conformance_run
from bench_agent.worker import conformance_trace
from bench_agent.worker import main as worker
from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.result import Failed, Measured, Trace
from bench_protocol.training import conformance
from bench_protocol.training.witness_steps import witness_steps

WORKLOAD = workload_named("mnist-dense")
RIGHT = {
    optimizer: conformance.references()[WORKLOAD.digest, optimizer]
    for optimizer in conformance.TRACED
}
LOSSES = [loss for reference in RIGHT.values() for loss in reference.losses]
ARGUMENTS = ["conformance", "--workload", "mnist-dense", "--framework", "mlx", "--recipe", "tuned"]


def right_traces(factor: float = 1.0) -> tuple[Trace, ...]:
    return tuple(
        Trace(
            optimizer=optimizer,
            batch_size=reference.batch_size,
            seed=reference.seed,
            losses=tuple(loss * factor for loss in reference.losses),
        )
        for optimizer, reference in RIGHT.items()
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
    long = [0.9, 0.4, 0.1]
    # Then those of the steps after the timing, and of the rewound session, as in the timed part.
    losses = chain(timed, (loss * factor for loss in LOSSES), long, repeat(0.5))
    monkeypatch.setattr(FakeSession, "loss", lambda self: next(losses))
    messages: list[Any] = []
    job = job_of(WORKLOAD, warm_up_seconds=0.002, budget_seconds=0.01, block_seconds=0.001)
    ended = worker.work(job, messages.append, clock)
    phases = [message.phase for message in messages if isinstance(message, PhaseBegan)]
    assert phases.index("warm_up") < phases.index("timing") < phases.index("conformance")
    assert engine.session.rewinds == 1
    first = [1, *np.diff(witness_steps(WORKLOAD, WORKLOAD.batch_size))]
    assert engine.session.blocks[-len(first) :] == first
    traced = [*[1] * 10, 1, 17, 6]
    assert traced in [engine.session.blocks[n : n + 13] for n in range(len(engine.session.blocks))]
    outcome = ended.outcome
    assert outcome.measurement is not None
    *short, last = outcome.measurement.traces
    bare = tuple(trace.model_copy(update={"movements": ()}) for trace in short)
    assert bare == right_traces(factor)
    assert [len(trace.movements) for trace in (*short, last)] == [4, 4, 4]
    assert (last.optimizer, last.steps, last.losses) == ("sgd", (1, 18, 24), tuple(long))
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


def test_a_workload_without_reference_is_not_traced() -> None:
    assert conformance_trace.has_reference(WORKLOAD)
    assert not conformance_trace.has_reference(small(WORKLOAD, 64))


def test_the_command_really_traces() -> None:
    ended = CliRunner().invoke(cli.app, [*ARGUMENTS, "--json"])
    assert ended.exit_code == 0, ended.output
    (pair,) = json.loads(ended.stdout)["pairs"]
    assert pair["verdict"] == "conformant"
    assert pair["largest_deviation"] < 1e-5
    assert len(pair["traces"]) == 2
    assert pair["environment"]["packages"]["mlx"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            TraceAnswer(traces=right_traces(1.001), environment=None),
            "wrong_result: the sgd trace is off",
        ),
        (
            TraceAnswer(traces=(), environment=None, problem="crashed in phase build"),
            "failed: crashed",
        ),
    ],
)
def test_the_command_fails_with_a_pair(
    monkeypatch: pytest.MonkeyPatch, answer: TraceAnswer, says: str
) -> None:
    monkeypatch.setattr(conformance_run, "run_traces", lambda job, log, limits, command: answer)
    ended = CliRunner().invoke(cli.app, ARGUMENTS)
    assert ended.exit_code == 1
    assert says in ended.output


def test_an_unknown_workload_is_wrong_usage() -> None:
    ended = CliRunner().invoke(cli.app, ["conformance", "--workload", "nonsense"])
    assert "mnist-dense" in str(ended.exception)
