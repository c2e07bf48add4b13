"""Real workers: engines pass their self-tests, a library that rounds behind them fails one,
and each workload of the catalogue is measured in each framework.

The other tests train small forms of the large workloads. These take minutes a cell.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.fakes.workloads import cell_of

from bench_agent import engines
from bench_agent.base.messages import Job, SelfTestTask, Timing
from bench_agent.base.self_test import Figures, problems
from bench_agent.run.self_test import recipes_for
from bench_agent.run.worker_process import run_task
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import Device, Precision, Recipe
from bench_protocol.catalogue.seeded import DEFAULT_SEED
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measured

from .conftest import installed


def figures_of(framework: str, precision: Precision, log: Path) -> Figures:
    installed(framework)
    recipes = recipes_for(framework, "cpu", precision)
    assert recipes == ("naive", "pipeline", "tuned")
    # The arithmetic of ``pipeline`` is that of ``naive``.
    job = SelfTestTask(
        framework=framework,
        device=Device(kind="cpu"),
        precision=precision,
        recipes=("naive", "tuned"),
    )
    answer = run_task(job, log)
    assert answer.figures is not None, log.read_text()
    return answer.figures


@pytest.mark.parametrize(
    "precision", ["float32", pytest.param("mixed_bfloat16", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("framework", engines.names())
def test_a_real_engine_passes(framework: str, precision: Precision, tmp_path: Path) -> None:
    figures = figures_of(framework, precision, tmp_path / "log")
    assert list(problems(figures, precision, "cpu", None)) == [], figures
    assert all(numbers.convolution_bits is not None for numbers in figures.numbers)


def rounds_to_bfloat16() -> bool:
    """Whether a convolution of PyTorch in another process keeps less than 16 bits."""
    program = """
import torch
torch.manual_seed(0)
x, w = torch.randn(8, 32, 16, 16), torch.randn(32, 32, 3, 3)
exact = torch.nn.functional.conv2d(x.double(), w.double())
off = (torch.nn.functional.conv2d(x, w).double() - exact).abs().max() / exact.abs().max()
print(off.item() > 2 ** -16)
"""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


def test_a_library_that_rounds_to_bfloat16_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch's flags say float32 all the while. On some CPUs the mode has no effect."""
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
    figures = figures_of("torch", "float32", tmp_path / "log")
    found = list(problems(figures, "float32", "cpu", None))
    if not rounds_to_bfloat16():
        assert found == []
        return
    (problem,) = found
    assert problem.startswith("convolutions keep 7 bits of a fraction, float32 keeps 20 or more")


SHORT = Timing(budget_seconds=0.5, target_spread=0.0)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("recipe", ["naive", "tuned"])
@pytest.mark.parametrize("framework", engines.names())
@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_an_honest_cell_is_measured(
    workload: Workload, framework: str, recipe: Recipe, tmp_path: Path
) -> None:
    installed(framework)
    cell = cell_of(workload, framework, recipe)
    log = tmp_path / "log"
    job = Job(workload=workload, cell=cell, seed=DEFAULT_SEED, timing=SHORT)
    outcome = run_task(job, log).outcome
    assert isinstance(outcome, Measured), log.read_text()[-2000:]
