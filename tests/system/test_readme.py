"""Every command of the README, run as it is written, and no more than an option for less work."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.fakes.projected import settled

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
LINES = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
SMALL = "--workload mnist-dense --framework mlx --device cpu --recipe naive --budget-seconds 0.5"
# What a command gets so that it ends soon, by its beginning.
LESS = {
    "bench-agent plan": SMALL,
    "bench-agent run": f"{SMALL} --preset smoke --wait-seconds 0 --yes",
    "bench-agent ab": "--device cpu --repeats 1 --budget-seconds 0.5",
    "bench-agent results withdraw": "--yes",
    "bench-server": "--port 0",
}
# tests/system/test_demo.py runs what this target runs.
DEMO = "deploy/demo.py"


class Shell:
    """A shell in a clone of the repository, with the environment of the tests as its ``.venv``."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "trainmark"
        self.url = "URL"
        self.result = "ID"
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "BENCH_SERVER"},
            "BENCH_HOME": str(folder / "agent"),
            "BENCH_SERVER_DATABASE_URL": f"sqlite:///{folder / 'server.db'}",
            "BENCH_SERVER_KEYS_DIR": str(folder / "server-keys"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }

    def written(self, line: str) -> str:
        command = line.partition(" #")[0].strip()
        less = next((LESS[begin] for begin in LESS if command.startswith(begin)), "")
        command = re.sub(r"\bURL\b", self.url, re.sub(r"\bID\b", self.result, command))
        return f"{command} {less}"

    def start(self, line: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", self.written(line)],
            cwd=self.clone if self.clone.is_dir() else self.clone.parent,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def __call__(self, line: str) -> str:
        process = self.start(line)
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0, f"{line}\n{output}"
        return output


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    opened = Shell(tmp_path)
    (line,) = [line for line in LINES if line.startswith("bench-server")]
    server = opened.start(line)
    assert server.stdout
    for text in server.stdout:
        if found := re.search(r"listening on (http://\S+)", text):
            opened.url = found[1]
            break
    try:
        yield opened
    finally:
        os.killpg(server.pid, 15)
        server.wait(timeout=30)


@pytest.mark.timeout(600)
def test_every_command_works_in_its_order(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    done = {line for line in LINES if line.startswith("bench-server")}
    for line in (line for line in LINES if line not in done):
        if line.startswith("git clone"):
            clone(shell, line)
        elif line == "make demo":
            assert DEMO in shell(f"{line} --dry-run")
        else:
            shell(line)
        if line.startswith("bench-agent run"):
            settled(shell.url)
            shell.result = httpx.get(f"{shell.url}/api/v1/results").json()["results"][0]["id"]
            read_with_pandas(shell, monkeypatch)
        done.add(line)
    assert done == set(LINES)
    assert (shell.clone / "trainmark-report.html").is_file()
    assert httpx.get(f"{shell.url}/api/v1/results/{shell.result}").status_code == 410


def clone(shell: Shell, line: str) -> None:
    if (ROOT / ".git").exists():
        shell(line.replace("REPOSITORY", str(ROOT)))
    else:
        shutil.copytree(ROOT, shell.clone, ignore=shutil.ignore_patterns(".venv*", ".demo"))
    (shell.clone / ".venv").symlink_to(sys.prefix)


def read_with_pandas(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = [text for kind, text in BLOCKS if kind == "python"]
    pandas = SimpleNamespace(read_csv=lambda address: httpx.get(address).text)
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    variables: dict[str, Any] = {}
    exec(code.replace("URL", shell.url), variables)
    assert "samples_per_second" in variables["board"].partition("\n")[0].split(",")


def test_it_is_short_and_begins_with_a_clone() -> None:
    assert len(README.splitlines()) < 110
    assert LINES[0].startswith("git clone ")
