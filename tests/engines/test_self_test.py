"""Real engines on the CPU pass their self-tests; a library that rounds behind them fails one."""

from pathlib import Path

import pytest
from tests.engines.conftest import installed

from bench_agent import engines
from bench_agent.base.self_test import Figures, SelfTestJob, problems
from bench_agent.machine import read_facts
from bench_agent.run.self_test import recipes_for
from bench_agent.run.worker_process import run_self_test
from bench_protocol.matrix import Device, Precision


def figures_of(framework: str, precision: Precision, log: Path) -> Figures:
    installed(framework)
    recipes = recipes_for(framework, "cpu", precision)
    assert recipes == ("naive", "pipeline", "tuned")
    job = SelfTestJob(
        framework=framework, device=Device(kind="cpu"), precision=precision, recipes=recipes
    )
    answer = run_self_test(job, log)
    assert answer.figures is not None, log.read_text()
    return answer.figures


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("framework", engines.names())
def test_a_real_engine_passes(framework: str, precision: Precision, tmp_path: Path) -> None:
    figures = figures_of(framework, precision, tmp_path / "log")
    assert list(problems(figures, precision, "cpu", None)) == [], figures
    assert all(numbers.convolution_bits is not None for numbers in figures.numbers)


def test_a_library_that_rounds_to_bfloat16_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch's flags say float32 all the while."""
    if "avx512_bf16" not in read_facts().cpu.instruction_sets:
        pytest.skip("oneDNN rounds to bfloat16 only where the processor has it")
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
    figures = figures_of("torch", "float32", tmp_path / "log")
    (problem,) = problems(figures, "float32", "cpu", None)
    assert problem.startswith("convolutions keep 7 bits of a fraction, float32 keeps 20 or more")
