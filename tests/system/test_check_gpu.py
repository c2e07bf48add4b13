"""``make check-gpu`` on a CPU, times cut short: each step ends, and its figures are shown."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASKED = "--device cpu --workloads mnist-dense --precisions float32"
# Other work on the machine may take any time.
SHORT = "--nonces 1 --seconds 0.5 --limit 3000 --patience 6"
BOTH = "torch,jax"
STEPS = {
    **dict.fromkeys(("readings", "clock", "loops"), BOTH),
    **dict.fromkeys(("speeds", "breaks", "facts"), "jax"),
}

pytestmark = [pytest.mark.long, pytest.mark.engine, pytest.mark.process]


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
