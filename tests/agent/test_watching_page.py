"""docs/watching.md: its commands parse, its workflow works, its members are those of the JSON."""

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fakes.lab import make_lab

from bench_agent.cli.exits import Exit
from bench_agent.cli.main import COMMANDS, load

PAGE = (Path(__file__).parents[2] / "docs" / "watching.md").read_text()
(WORKFLOW,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
STEPS = yaml.safe_load(WORKFLOW)["jobs"]["watch"]["steps"]
RUN = [step["run"] for step in STEPS if "run" in step]
COMMAND_LINES = [*re.findall(r"^bench-agent .*$", PAGE, re.MULTILINE), RUN[0]]


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_each_command_of_the_page_is_one_that_the_agent_takes(line: str) -> None:
    words = shlex.split(re.split(r"[>|]", line)[0])
    assert words[0] == "bench-agent"
    assert words[1] in COMMANDS
    assert load(words[1]).make_context(words[1], words[2:])


def test_the_workflow_runs_daily_on_a_machine_of_its_own() -> None:
    workflow = yaml.safe_load(WORKFLOW)
    assert workflow[True]["schedule"] == [{"cron": "0 3 * * *"}]  # YAML reads "on" as true
    assert "self-hosted" in workflow["jobs"]["watch"]["runs-on"]
    assert Path(workflow["jobs"]["watch"]["env"]["BENCH_HOME"]).is_absolute()


@pytest.mark.parametrize(("code", "fails"), [(0, False), (1, True), (3, True), (4, False)])
def test_the_step_fails_where_something_became_slower(
    tmp_path: Path, code: int, fails: bool
) -> None:
    """Run as GitHub runs a step: ``bash -e``."""
    program = tmp_path / "bench-agent"
    program.write_text(f"#!/bin/sh\nexit {code}\n")
    program.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e", "-c", RUN[0]], cwd=tmp_path, env=environ, check=False)
    assert bool(done.returncode) is fails


def test_the_page_names_the_exit_codes() -> None:
    (table,) = re.findall(r"## Exit codes\n(.*?)\n##", PAGE, re.DOTALL)
    assert set(map(int, re.findall(r"^\| (\d+) \|", table, re.MULTILINE))) == set(Exit)


def test_the_page_names_every_member_of_the_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = make_lab(tmp_path, monkeypatch)
    said = lab.document("--now")
    del said["exit_code"]
    (section,) = re.findall(r"## JSON\n(.*?)\n## ", PAGE, re.DOTALL)
    tables = re.findall(r"\| content \|\n\|---\|---\|\n((?:\|.*\n)+)", section)
    assert [_members(table) for table in tables] == [set(said), set(said["cells"][0])]


def _members(table: str) -> set[str]:
    rows: list[Any] = re.findall(r"^\| (.*?) \|", table, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}
