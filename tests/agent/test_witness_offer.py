"""The offer of a witnessed run at the end of a run: how long one takes, and what a failure does."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fakes import results

from bench_agent.base.errors import ServerUnreachable, UsageProblem
from bench_agent.base.home import Home
from bench_agent.base.messages import SpeedReady, SpeedReply, SpeedRooted, SpeedRunJob, Timing
from bench_agent.base.speed_run import OTHER_SECONDS, expected_seconds
from bench_agent.cli import witness
from bench_agent.plan.plan import PlannedCell
from bench_agent.remote.client import ServerRefused
from bench_agent.run.speed_run import Witnessed
from bench_agent.worker import speed_run as worker
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.result import Result
from bench_protocol.training import speed_run


@pytest.mark.parametrize("samples_per_second", [400, 2_000, 5_000, 50_000, 5_000_000, 50_000_000])
def test_what_is_expected_is_what_the_worker_trains(
    samples_per_second: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = trained_steps(samples_per_second, monkeypatch)
    training = steps * speed_run.BATCH_SIZE / samples_per_second
    assert expected_seconds(samples_per_second) == pytest.approx(OTHER_SECONDS + training)


def test_a_slow_device_gets_no_offer() -> None:
    """Four segments and the warm-up are 112 steps of 1,024."""
    assert expected_seconds(3_000) > witness.OFFERED_SECONDS
    assert expected_seconds(10_000) < witness.OFFERED_SECONDS


def planned(workload: str) -> PlannedCell:
    cell = results.make_cell(workload)
    return PlannedCell(
        cell=cell, workload=workload_named(workload), timing=Timing(), estimate_seconds=1.0
    )


def measured(one: PlannedCell, flops_per_second: float) -> Result:
    """A result of a planned cell at a rate."""
    step = one.workload.training_flops_per_sample * one.cell.batch_size
    step_ns = round(step / flops_per_second * 1e9)
    measurement = results.make_measurement(one.cell, step_ns)
    return results.make_result(cell=one.cell, measurement=measurement)


def offered(*rates: tuple[str, float]) -> PlannedCell | None:
    """The cell that is offered after a run that measured these workloads at these FLOP/s."""
    cells = [planned(workload) for workload, _ in rates]
    summary: Any = SimpleNamespace(
        results=[measured(one, rate) for one, (_, rate) in zip(cells, rates, strict=True)]
    )
    journal: Any = SimpleNamespace(cells=cells)
    return witness.fastest(journal, summary)


@pytest.mark.parametrize("workload", ["fashion-mlp", "mnist-cnn", "cifar100-vgg16"])
def test_a_fast_device_gets_an_offer_whatever_the_run_measured(workload: str) -> None:
    made = offered((workload, 1e12))
    assert made is not None
    assert made.cell.workload == speed_run.workload().name
    assert made.cell.framework == results.make_cell().framework
    assert offered((workload, 1e9)) is None


def test_the_rate_of_the_workload_itself_decides_where_there_is_one() -> None:
    assert offered(("cifar100-vgg16", 1e12), ("fashion-mlp", 1e9)) is None
    assert offered(("cifar100-vgg16", 1e9), ("fashion-mlp", 1e12)) is not None
    assert offered() is None


def trained_steps(samples_per_second: float, monkeypatch: pytest.MonkeyPatch) -> int:
    """Steps of a worker whose session trains at a rate."""
    steps = 0

    def train_block(count: int) -> None:
        nonlocal steps
        steps += count

    session = SimpleNamespace(
        train_block=train_block,
        sync=lambda: None,
        close=lambda: None,
        rewind=lambda _: None,
        trained_parameters=list,
    )
    monkeypatch.setattr(worker, "_open", lambda *_: session)
    monkeypatch.setattr(worker, "job_of", lambda *_: SimpleNamespace(weights=dict))

    def timed(block: Callable[[], object]) -> int:
        before = steps
        block()
        return round((steps - before) * speed_run.BATCH_SIZE / samples_per_second * 1e9)

    def ask(question: SpeedReady | SpeedRooted) -> SpeedReply:
        return SpeedReply(seed="0" * 32)

    engine: Any = SimpleNamespace(load=lambda *_: None)
    job = SpeedRunJob.model_construct(cell=None, folder="")
    worker.run(engine, job, ask, timed)
    return steps


REFUSED = ServerRefused(429, {"code": "too_many_requests", "detail": "a key may begin none"})


@pytest.mark.parametrize("error", [REFUSED, ServerUnreachable("gone"), UsageProblem("died")])
def test_a_failed_offer_is_a_line_and_ends_no_run(
    error: Exception,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(witness, "fastest", lambda *_: object())
    monkeypatch.setattr(witness, "at_server", fails)
    nothing: Any = None
    witness.offer("http://127.0.0.1:9", Home(tmp_path), nothing, nothing, True)
    assert capsys.readouterr().err == f"no witnessed run: {error}\n"


@pytest.mark.parametrize("state", ["witnessed", "waiting"])
def test_a_witnessed_rate_names_its_set_up(state: str) -> None:
    words = witness.in_words(Witnessed(state, 21_053, 21_200.0, 8, log_index=7))
    assert "at least 21,053 samples/s by the server's clock (21,200 by this machine's)" in words
    assert "for fashion-mlp at batch 1,024 without dropout: another set-up" in words
