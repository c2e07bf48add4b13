"""``ab``: choice of the sides, lockstep of the workers, output."""

import io
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.fakes.results import make_measurement

from bench_agent.base.errors import UsageProblem
from bench_agent.base.messages import Answer, FoundDevice, Job, Probe
from bench_agent.output.ab_table import AbDisplay, document, show_answer, verdict_line
from bench_agent.plan.estimates import MeasuredTimes
from bench_agent.plan.plan import Selection
from bench_agent.run import ab
from bench_agent.run.worker_process import Limits
from bench_protocol.payload import doubt_text, doubts
from bench_protocol.payload.result import Failed, Measured

CPU = FoundDevice(kind="cpu", index=0, name="CPU")
GPU = FoundDevice(kind="cuda", index=0, name="GPU")
HERE = {
    "mlx": Probe(devices=(CPU,), environment=None),
    "tensorflow": Probe(devices=(CPU, GPU), environment=None),
}
MLX = Selection(workloads=("fashion-mlp",), frameworks=("mlx",))

Command = tuple[str, ...]


def a_side(name: str, *assignments: str, base: Selection = MLX) -> ab.Side:
    choice = ab.choose(base, list(assignments), sys.executable)
    frameworks = choice.selection.frameworks
    return ab.side(name, choice, {name: HERE[name] for name in frameworks}, MeasuredTimes())


def said_of(answer: dict[str, Any]) -> list[str]:
    stream = io.StringIO()
    show_answer(Console(file=stream), answer)
    return stream.getvalue().splitlines()


def measures(step_ns: dict[str, int], ran: list[str]) -> ab.RunJob:
    """Each recipe takes its time, and a little more in each pair; ``ran`` gets the recipes."""

    def run_job(job: Job, *others: Any) -> Answer:
        ran.append(job.cell.recipe)
        measurement = make_measurement(
            job.cell, step_ns[job.cell.recipe] + 100 * ran.count(job.cell.recipe)
        )
        return Answer(outcome=Measured(measurement=measurement), environment=None)

    return run_job


def test_pairs_have_a_verdict(tmp_path: Path) -> None:
    ran: list[str] = []
    a, b = a_side("A", "recipe=naive"), a_side("B")
    steps = {"naive": 1_200_000, "tuned": 1_000_000}
    done = list(ab.pairs(a, b, 4, tmp_path, run_job=measures(steps, ran)))
    assert Counter(ran) == {"naive": 4, "tuned": 4}
    verdict = ab.compare_sides(done)
    assert (verdict.kind, verdict.speed_up) == ("faster", pytest.approx(1.2, abs=1e-3))
    (said,) = said_of(document(a, b, done, verdict))
    assert said == (
        "B is 1.20 times as fast as A (95 % CI 1.1999 to 1.2000): 127,968 against 106,644 samples/s"
    )


def test_both_of_a_pair_get_turns_at_one_address(tmp_path: Path) -> None:
    """Neither fake worker requests its turn, and no process waits for that."""
    commands: list[Command] = []

    def run_job(job: Job, log: Path, limits: Limits, command: Command, *others: Any) -> Answer:
        commands.append(command)
        measurement = make_measurement(job.cell, 1_000_000)
        return Answer(outcome=Measured(measurement=measurement), environment=None)

    a, b = a_side("A", "recipe=naive"), a_side("B")
    assert len(list(ab.pairs(a, b, 2, tmp_path, run_job=run_job))) == 2
    assert [command[-2] for command in commands] == ["--turns"] * 4
    addresses = [command[-1] for command in commands]
    assert addresses[0] == addresses[1] != addresses[2] == addresses[3]


def test_the_document_holds_every_run(tmp_path: Path) -> None:
    a, b = a_side("A", "recipe=naive"), a_side("B", "OMP_NUM_THREADS=1")
    steps = {"naive": 1_000_000, "tuned": 1_000_000}
    done = list(ab.pairs(a, b, 2, tmp_path, run_job=measures(steps, [])))
    shown = document(a, b, done, ab.compare_sides(done))
    assert (shown["pairs"], shown["verdict_kind"], shown["speed_up_low"]) == (
        2,
        "too_few_runs",
        None,
    )
    assert shown["a"]["cell"]["recipe"] == "naive"
    assert shown["b"]["command"][:2] == ["env", "OMP_NUM_THREADS=1"]
    assert shown["b"]["samples_per_second"] == [pair.b for pair in done]
    assert verdict_line(shown) == (
        "B is 1.00 times as fast as A; no verdict yet: 2 pairs, needs 3 "
        "(127,981 against 127,981 samples/s)"
    )


@pytest.mark.parametrize(("ratio", "wide"), [(1.2, True), (1.01, False)])
def test_what_narrows_a_wide_interval_is_said(ratio: float, wide: bool) -> None:
    a, b = a_side("A"), a_side("B")
    done = [ab.Pair(1.0, 1.0), ab.Pair(ratio, 1.0), ab.Pair(1.0, ratio)]
    shown = document(a, b, done, ab.compare_sides(done))
    assert shown["verdict_kind"] == "no_difference"
    assert ("The interval is wide" in "".join(said_of(shown))) == wide


def test_what_there_is_to_doubt_is_said_once(tmp_path: Path) -> None:
    a, b = a_side("A"), a_side("B")
    few = doubts.of_blocks(make_measurement(a.cell, 1_000_000, block_count=3).blocks)
    done = [ab.Pair(1.0, 1.0, (("B", few[0]),)), ab.Pair(1.0, 1.0)]
    busy = doubts.of_other_load(1.5, 2)
    shown = document(a, b, done, ab.compare_sides(done), busy)
    assert [warning["code"] for warning in shown["warnings"]] == ["other_load", "few_blocks"]
    assert said_of(shown)[:2] == [
        f"Warning: {doubt_text.words(busy[0])}; fix: close other programs and run again",
        f"Warning: 1 of 4 runs (B): {doubt_text.words(few[0])}; fix: run again with "
        "--budget-seconds 30",
    ]


def test_how_long_it_takes_is_said_before_the_first_pair() -> None:
    console = Console(file=io.StringIO())
    AbDisplay(console, a_side("A"), a_side("B"), 8)
    assert re.search(r"\n8 pairs, about \d+ min", console.file.getvalue())  # type: ignore[attr-defined]


def test_a_run_that_fails_ends_it(tmp_path: Path) -> None:
    def crash(*given: Any) -> Answer:
        return Answer(outcome=Failed(kind="crashed", phase="import"), environment=None)

    with pytest.raises(ab.RunFailed) as caught:
        list(ab.pairs(a_side("A"), a_side("B"), 3, tmp_path, run_job=crash))
    assert caught.value.log.name == f"001-{caught.value.side.name}.log"


def test_axes_and_environment() -> None:
    side = a_side("A", "batch_size=32", "recipe=naive", "XLA_FLAGS=--x=y z")
    assert (side.cell.batch_size, side.cell.recipe) == (32, "naive")
    assert side.command == ("env", "XLA_FLAGS=--x=y z", sys.executable, "-m", "bench_agent.worker")
    assert a_side("A").cell.recipe == "tuned"


def test_without_a_device_the_accelerator_is_meant() -> None:
    base = Selection(workloads=("fashion-mlp",), frameworks=("tensorflow",))
    assert str(a_side("A", base=base).cell.device) == "cuda"
    assert str(a_side("A", "device=cpu", base=base).cell.device) == "cpu"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: a_side("A", "x=1"), "'x=1' is not key=value with a key of: workload, framework"),
        (lambda: a_side("A", "recipe"), "'recipe' is not key=value"),
        (lambda: a_side("A", "batch-size=big"), "batch-size is a whole number from 1 on"),
        (lambda: a_side("A", "recipe=fast"), "unknown recipe 'fast'; choose one of: naive"),
        (lambda: a_side("A", "batch-size=70000"), "side A cannot run here"),
        (
            lambda: a_side("B", base=Selection(frameworks=("mlx",))),
            r"side B must be one set-up, but \d+ match; name one --workload \(mnist-cnn, [^)]*\), "
            "for example:\nbench-agent ab --workload mnist-cnn --framework mlx "
            "--a recipe=naive --b recipe=tuned$",
        ),
        (
            lambda: a_side("B", base=replace(MLX, batch_sizes=(32, 64))),
            r"2 match; name one --batch-size \(32, 64\), for example:\nbench-agent ab "
            "--workload fashion-mlp --framework mlx --batch-size 32 --a",
        ),
        (lambda: ab.choose(MLX, [], "/nowhere/python"), "/nowhere/python: cannot be started"),
        (lambda: ab.choose(MLX, [], "false"), "false: is no Python that answers; fix: --a-python"),
    ],
)
def test_what_is_no_side_is_said(make: Callable[[], object], says: str) -> None:
    with pytest.raises(UsageProblem, match=says):
        make()
