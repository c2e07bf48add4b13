"""The page that a demo or an installation with a fault ends with, and the demo's own lines."""

import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from deploy import demo_page
from deploy.install_failed import page

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


def test_a_run_that_ends_before_its_first_repeat_has_a_page() -> None:
    text = demo_page.page([], [], "bench-agent", 2)
    assert "no repeat was measured" in text
    assert "run ended with exit code 2 before its first repeat" in text
    assert "      bench-agent run --preset smoke" in text
    assert demo_page.page([result("mlx", "metal")], [], "bench-agent", 3) is None


def test_the_page_asks_for_checks_that_doctor_has() -> None:
    assert set(demo_page.CHECKS) <= CHECKS.keys()


ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delenv("TRAINMARK_DEMO", raising=False)
    yield importlib.import_module("demo")
    for name in ("demo", "demo_page"):
        sys.modules.pop(name, None)


def test_each_lower_level_is_a_line_with_its_reason(demo: ModuleType) -> None:
    spread = "its block times are uneven: their mean is 2.01 times their median; the limit is 1.5"
    levels = [(3, None), (2, f"level 3: {spread}"), (2, f"level 3: {spread}"), (1, "level 2: late")]
    first, *lower = demo.level_lines(levels)
    assert first.startswith("At trust level 3: 1 of 4 results. ")
    assert lower == [f"  2 at level 2: {spread}", "  1 at level 1: late"]


def test_a_stopped_projection_is_named_at_once(demo: ModuleType) -> None:
    asked: list[str] = []

    def server(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        stopped = {"projection_stopped": "entry 7: no such workload"}
        return httpx.Response(200, json=stopped if request.url.path == "/readyz" else {})

    http = httpx.Client(base_url="http://demo.test", transport=httpx.MockTransport(server))
    with pytest.raises(demo.DemoProblem, match=r"entry 7: no such workload; see .*server\.log"):
        demo._recomputed(http, "0f1e2d3c4b5a6978")
    assert asked == ["/readyz"]


def test_the_agents_page_shows_the_report_of_the_demos_folder(demo: ModuleType) -> None:
    home = Path(demo.environment()["BENCH_HOME"]).relative_to(ROOT)
    command = f"\nBENCH_HOME={home} .venv/bin/bench-agent report\n"
    assert command in (ROOT / "docs" / "agent.md").read_text()


ROOT = Path(__file__).parents[2]
# Makes an environment whose pip fails as pip does: an error on stderr, status 1.
PYTHON = """#!/bin/sh
case "$*" in
  *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *pip*) echo "ERROR: No matching distribution found for tensorflow" >&2; exit 1 ;;
  *install_failed.py*) exec {python} "$@" ;;
esac
"""


def test_a_failed_installation_ends_with_what_to_do(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "locks", tmp_path / "locks")
    for name in ("shared", "agent", "server"):
        (tmp_path / name).mkdir()
        shutil.copy(ROOT / name / "pyproject.toml", tmp_path / name)
    (tmp_path / "deploy").mkdir()
    for name in ("install_failed.py", "virtual_environment.sh"):
        shutil.copy(ROOT / "deploy" / name, tmp_path / "deploy")
    program = tmp_path / "python"
    program.write_text(PYTHON.format(python=shutil.which("python3")))
    program.chmod(0o755)

    run = subprocess.run(
        ["make", "demo", f"PYTHON={program}", "EXTRAS=tensorflow,mlx"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert run.returncode != 0
    assert "No matching distribution found for tensorflow" in run.stderr
    assert "What did not\n  pip could not install Trainmark with tensorflow,mlx." in run.stderr
    assert "      make demo EXTRAS=mlx\n" in run.stderr
    assert not list((tmp_path / ".venv").glob("installed-*"))


@pytest.mark.parametrize(("free_gigabytes", "said"), [(1, True), (100, False)])
def test_a_full_disk_is_named(free_gigabytes: int, said: bool) -> None:
    assert (
        "GB are free on this disk" in page("tensorflow,mlx,energy", free_gigabytes * 10**9)
    ) == said
