"""The page that a demo with a fault ends with."""

from typing import Any

from deploy import demo_page

from bench_agent.doctor.table import CHECKS


def result(framework: str, device: str, failure: str | None = None, index: int = 0) -> Any:
    cell = {
        "framework": framework,
        "workload": "fashion-mlp",
        "device": {"kind": device, "index": index},
    }
    return {"cell": cell, "status": "failed" if failure else "measured", "failure": failure}


def finding(name: str, verdict: str, sentence: str, hint: str | None = None) -> Any:
    return {"id": name, "verdict": verdict, "sentence": sentence, "hint": hint}


GOOD = finding("frameworks.mlx", "ok", "mlx 0.32.4 sees metal, cpu")


def test_a_run_without_a_fault_has_no_page() -> None:
    absent = finding("frameworks.jax", "skip", "jax is not installed", "pip install jax")
    assert demo_page.page([result("mlx", "metal")], [GOOD, absent], "bench-agent") is None


def test_each_fault_has_its_command() -> None:
    results = [
        result("mlx", "metal"),
        result("mlx", "cpu"),
        result("mlx", "metal", "killed while timing"),
        result("torch", "cuda", "out of memory", index=1),
    ]
    broken = finding("frameworks.jax", "fail", "jax cannot be used: ImportError", "pip install jax")
    cpu_only = finding(
        "metal.tensorflow", "warn", "tensorflow runs on the CPU only", "pip install x"
    )
    text = demo_page.page(results, [GOOD, broken, cpu_only], "bench-agent")
    worked, failed = text.split("What did not")
    assert "mlx on metal: 1 of 2 repeats measured" in worked
    assert "mlx on cpu: 1 of 1 repeat measured" in worked
    assert "mlx 0.32.4 sees metal, cpu" in worked
    assert "torch" not in worked
    lines = failed.splitlines()
    for fault, command in (
        (
            "mlx on metal: 1 of 2 repeats failed: killed while timing",
            "--framework mlx --device metal",
        ),
        ("torch on cuda:1: 1 of 1 repeat failed: out of memory", "--device cuda:1 --workload"),
        ("jax cannot be used: ImportError", "pip install jax"),
        ("tensorflow runs on the CPU only", "pip install x"),
    ):
        (number,) = [n for n, line in enumerate(lines) if fault in line]
        assert command in lines[number + 1]
    assert "bench-agent doctor --bundle" in failed


def test_nothing_measured_is_said() -> None:
    text = demo_page.page([], [finding("frameworks", "fail", "no framework works here")], "agent")
    assert "no repeat was measured" in text


def test_a_run_that_ends_before_its_first_repeat_has_a_page() -> None:
    text = demo_page.page([], [], "bench-agent", 2)
    assert "no repeat was measured" in text
    assert "run ended with exit code 2 before its first repeat" in text
    assert "      bench-agent run --preset smoke" in text
    assert demo_page.page([result("mlx", "metal")], [], "bench-agent", 3) is None


def test_the_page_asks_for_checks_that_doctor_has() -> None:
    assert set(demo_page.CHECKS) <= CHECKS.keys()
