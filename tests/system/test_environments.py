"""One run over two real virtual environments: the agent's own has JAX, the added one only MLX."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.engines.conftest import installed
from tests.fakes.environments import make_environment

from bench_protocol.payload import statement
from bench_protocol.payload.result import Result
from bench_protocol.signing import envelope

MAIN = "from bench_agent.cli.main import main; main()"
JAX_ONLY = re.compile(r"(?!tensorflow|keras|torch|mlx)")
MLX_ONLY = re.compile(r"(?!tensorflow|keras|torch|jax)")
CELL = ("--framework", "mlx", "--framework", "jax", "--workload", "mnist-dense")
CELL += ("--recipe", "naive")
MARK = "the added environment's"


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = make_environment(folder / "own", lambda name: bool(JAX_ONLY.match(name)))
        self.other = make_environment(folder / "other", lambda name: bool(MLX_ONLY.match(name)))
        # Runs at each start of that interpreter, so that its results can be recognised.
        (site,) = (folder / "other").glob("lib/python*/site-packages")
        (site / "mark.pth").write_text(f"import os; os.environ.setdefault('MLX_MARK', {MARK!r})\n")

    def __call__(self, *arguments: str, code: int = 0) -> str:
        inherited = {name: value for name, value in os.environ.items() if name != "BENCH_SERVER"}
        done = subprocess.run(
            [self.own, "-c", MAIN, *arguments],
            env=inherited | {"BENCH_HOME": str(self.folder / "home"), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def results(self) -> dict[str, Result]:
        files = (self.folder / "home" / "outbox" / "pending").glob("*.json")
        signed = [statement.parse_result(envelope.read(f.read_bytes()).payload) for f in files]
        return {result.cell.framework: result for result in signed}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    for framework in ("mlx", "jax"):
        installed(framework)
    return Machine(tmp_path_factory.mktemp("machine"))


def test_one_run_measures_across_environments(machine: Machine) -> None:
    machine("environments", "add", str(machine.folder / "other"))
    machine("run", *CELL, "--budget-seconds", "0.5", "--wait-seconds", "0", "--json")
    results = machine.results()
    assert set(results) == {"jax", "mlx"}
    assert results["mlx"].measurement
    # Both are measured in the worker: packages, and a variable that only that interpreter sets.
    assert "mlx" in results["mlx"].environment.packages
    assert results["mlx"].environment.settings["MLX_MARK"] == MARK
    assert "MLX_MARK" not in results["jax"].environment.settings
    # Where an interpreter lies is nobody's business.
    assert str(machine.folder) not in results["mlx"].model_dump_json()


@pytest.mark.long  # a run starts them likewise
def test_conformance_starts_workers_where_the_framework_is(machine: Machine) -> None:
    machine("environments", "add", str(machine.other))
    pairs = json.loads(machine("conformance", *CELL, "--json"))["pairs"]
    assert {pair["cell"]["framework"]: pair["verdict"] for pair in pairs} == {
        "jax": "conformant",
        "mlx": "conformant",
    }


@pytest.mark.long
def test_ab_starts_each_side_where_its_framework_is(machine: Machine) -> None:
    machine("environments", "add", str(machine.other))
    sides = ("--a", "framework=mlx", "--b", "framework=jax", "--budget-seconds", "0.5")
    answer = json.loads(machine("ab", *CELL[4:], *sides, "--repeats", "2", "--json"))
    assert [answer[side]["cell"]["framework"] for side in ("a", "b")] == ["mlx", "jax"]


def test_list_check_and_doctor_show_both(machine: Machine) -> None:
    machine("environments", "add", str(machine.other))
    own, other = json.loads(machine("environments", "list", "--json"))["environments"]
    assert (own["own"], "mlx" in own["frameworks"]) == (True, False)
    assert (other["interpreter"], other["frameworks"]) == (str(machine.other), ["mlx"])
    own, other = json.loads(machine("environments", "check", "--json"))["environments"]
    assert [device["kind"] for device in other["devices"]["mlx"]]
    assert own["devices"]["jax"]
    only = ("--only", "environments", "--only", "frameworks", "--only", "mlx-backend")
    findings = {
        finding["id"]: finding
        for finding in json.loads(machine("doctor", *only, "--json"))["findings"]
    }
    assert findings["environments"]["verdict"] == "ok"
    assert findings["mlx-backend"]["verdict"] == "ok"
    assert str(machine.other) in findings["frameworks.mlx"]["sentence"]
    assert str(machine.other) not in findings["frameworks.jax"]["sentence"]
