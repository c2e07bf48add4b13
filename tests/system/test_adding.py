"""docs/adding.md, carried out word by word on a copy of the tree."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import httpx
import pytest
from tests.fakes.ports import free_port
from tests.fakes.projected import recomputed
from tests.system.conftest import BIN

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/adding.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)
LITERAL, ENGINE = (text for language, text in BLOCKS if language == "python")
SERVED, LIMITS, CHECKED = (
    text.strip().splitlines() for language, text in BLOCKS if language == "sh"
)
MISSING = ("No accuracy band was measured", "No loss curve was measured")


class Copy:
    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, str(free_port())
        packages = [ROOT / name / "src" for name in ("agent", "server", "shared")]
        for source in (*packages, ROOT / "benchmarks", ROOT / "migrations"):
            kept = source.relative_to(ROOT)
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / kept, ignore=ignored)
        catalogue = folder / "shared/src/bench_protocol/catalogue/catalogue.py"
        opening, literal = LITERAL.split("\n", 1)
        text = catalogue.read_text("utf-8")
        assert opening in text
        literal = literal.partition("    # ...")[0]
        catalogue.write_text(text.replace(opening, f"{opening}\n{literal}"), "utf-8")
        (folder / "agent/src/bench_agent/engines/plain.py").write_text(ENGINE, "utf-8")
        paths = [str(folder / name / "src") for name in ("agent", "server", "shared")]
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), *paths]),
            "BENCH_HOME": str(folder / "home"),
            "BENCH_SERVER_DATABASE_URL": f"sqlite:///{folder / 'server.db'}",
            "BENCH_SERVER_KEYS_DIR": str(folder / "server-keys"),
        }

    def _command(self, line: str, *more: str) -> list[str]:
        program, *arguments = shlex.split(line.removesuffix("&").replace("8321", self.port))
        found = Path(sys.executable) if program == "python" else BIN / program
        return [str(found), *arguments, *more]

    def run(self, line: str, *more: str) -> str:
        ended = subprocess.run(
            self._command(line, *more),
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr + ended.stdout
        return ended.stdout

    def start(self, line: str) -> subprocess.Popen[str]:
        server = subprocess.Popen(
            self._command(line),
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        assert any("listening on" in said for said in server.stdout)
        return server


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("adding"))


def test_a_framework_of_one_file_trains_the_same(copy: Copy) -> None:
    conformance, run = CHECKED
    (pair,) = json.loads(copy.run(conformance, "--json"))["pairs"]
    assert pair["verdict"] == "conformant", pair["reason"]
    quick = ("--budget-seconds", "0.5", "--wait-seconds", "0", "--json")
    (result,) = json.loads(copy.run(run, *quick))["results"]
    assert result["status"] == "measured", result


def test_a_workload_of_one_literal_reaches_trust_level_3(copy: Copy) -> None:
    migrate, serve, run = SERVED
    address = f"http://127.0.0.1:{copy.port}"
    copy.run(migrate)
    server = copy.start(serve)
    try:
        copy.run(run, "--budget-seconds", "0.5", "--wait-seconds", "0", "--recipe", "naive")
        of_workload = f"{address}/api/v1/results?workload=mnist-shallow"
        (sent,) = httpx.get(of_workload).json()["results"]
        stored = recomputed(address, sent["id"])
        assert (stored["workload"], stored["trust_level"]) == ("mnist-shallow", 3)
        pages = ("/workloads/mnist-shallow", f"/results/{sent['id']}")
        for page in pages:
            shown = unescape(httpx.get(address + page).text)
            assert all(sentence in shown for sentence in MISSING), page
    finally:
        server.terminate()
        server.wait(timeout=20)
    for line in LIMITS:
        copy.run(line)
    server = copy.start(serve)
    try:
        for page in pages:
            answer = httpx.get(address + page)
            assert answer.status_code == 200
            assert not any(sentence in unescape(answer.text) for sentence in MISSING), page
    finally:
        server.terminate()
        server.wait(timeout=20)
