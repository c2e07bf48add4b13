"""``make check-gpu`` on a CPU, times cut short: each step ends, and its figures are shown."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.evidence.gpu import __main__ as gpu
from tests.evidence.gpu import steps
from tests.evidence.gpu.parts import Part

ROOT = Path(__file__).parents[2]
ASKED = "--device cpu --workloads mnist-dense --precisions float32"
# Other work on the machine may take any time.
SHORT = "--nonces 1 --seconds 0.5 --limit 3000 --patience 6"
BOTH = "torch,jax"
STEPS = {
    **dict.fromkeys(("readings", "clock", "loops"), BOTH),
    **dict.fromkeys(("speeds", "breaks", "facts"), "jax"),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_part_that_fails_fails_its_step(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The results of the others are there all the same."""
    parts = []

    def first_fails(asked: steps.Asked) -> list[Part]:
        for number, part in enumerate(real(asked)):
            command = ["sh", "-c", f"echo '{{'; exit {0 if number else 3}"]
            parts.append(replace(part, commands=[command], may_fail=False))
        return parts

    real = steps.STEPS[step]
    monkeypatch.setitem(steps.STEPS, step, first_fails)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    words = [step, "--out", str(tmp_path), *ASKED.split(), "--frameworks", "torch,jax"]
    monkeypatch.setattr(sys, "argv", ["check-gpu", *words])
    assert gpu.main() == 1
    assert capsys.readouterr().err == f"FAILED OR LEFT OUT: {parts[0].name}\n"
    shown = json.loads((tmp_path / "figures.json").read_text())["parts"]
    assert [part["exit"] for part in shown] == [3, *[0] * (len(parts) - 1)]
    assert "exit 3" in (tmp_path / "table.md").read_text()
    monkeypatch.setattr(sys, "argv", ["check-gpu", *words, "--limit", "1"])
    parts.clear()
    assert gpu.main() == 1
    assert capsys.readouterr().err.count("; ") == len(parts) - 1


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.timeout(2400)
def test_every_step_works_on_a_cpu(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OUT": str(tmp_path)}
    for step, frameworks in STEPS.items():
        command = [sys.executable, "-m", "tests.evidence.gpu", step, "--frameworks", frameworks]
        command += [*ASKED.split(), *SHORT.split()]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    failed = [part for part in figures["parts"] if part["exit"] != 0]
    assert not failed, failed
    assert {part["step"] for part in figures["parts"]} == set(STEPS)
    (readings,) = figures["readings"]
    assert (readings["sessions"], readings["not_conformant"]) == (2, [])
    sides = {(row["framework"], row["side"]) for row in figures["loops"]}
    assert {("torch", "bare eager"), ("jax", "bare scan"), ("jax", "tuned")} <= sides
    assert {row["framework"] for row in figures["clock"]} == {"torch", "jax"}
    assert {row["status"] for row in figures["speeds"]} == {"measured"}
    assert figures["breaks"]["resumed"]["kept_before_the_kill"] > 0
    assert any("level 3: 1 of 1" in line for line in figures["smoke"])
