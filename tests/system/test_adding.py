"""docs/adding.md, carried out literally on a copy of the packages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bench_agent
import bench_protocol

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/adding.md").read_text("utf-8"), re.S)
AGENT = [sys.executable, "-c", "from bench_agent.cli.main import main; main()"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages with the page's workload and framework in them: one file touched for each."""
    folder = tmp_path_factory.mktemp("adding")
    for package in (bench_agent, bench_protocol):
        source = Path(str(package.__file__)).parent
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, folder / source.name, ignore=ignored)
    workload, engine = BLOCKS
    catalogue = folder / "bench_protocol/catalogue/catalogue.py"
    opening, literal = workload.split("\n", 1)
    text = catalogue.read_text("utf-8")
    assert opening in text
    literal = literal.partition("    # ...")[0]
    catalogue.write_text(text.replace(opening, f"{opening}\n{literal}"), "utf-8")
    (folder / "bench_agent/engines/plain.py").write_text(engine, "utf-8")
    return folder


def ask(copy: Path, *arguments: str) -> Any:
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy),
        "BENCH_HOME": str(copy / "home"),
    }
    ended = subprocess.run(
        [*AGENT, *arguments, "--json"], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return json.loads(ended.stdout)


def test_a_framework_of_one_file_trains_the_same(copy: Path) -> None:
    choice = ("--framework", "plain", "--workload", "mnist-dense")
    (pair,) = ask(copy, "conformance", *choice)["pairs"]
    assert pair["verdict"] == "conformant", pair["reason"]
    assert pair["largest_deviation"] < 1e-5


def test_a_workload_of_one_literal_is_planned_for_every_framework(copy: Path) -> None:
    plan = ask(copy, "plan", "--workload", "mnist-shallow", "--framework", "plain")
    assert [cell["workload"] for cell in plan["cells"]] == ["mnist-shallow"]


def test_it_is_measured(copy: Path) -> None:
    choice = ("--workload", "mnist-shallow", "--framework", "plain", "--budget-seconds", "0.5")
    summary = ask(copy, "run", "--preset", "smoke", "--wait-seconds", "0", *choice)
    (result,) = summary["results"]
    assert result["status"] == "measured", result
