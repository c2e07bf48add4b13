"""``bench-agent doctor`` in deliberately broken environments; each fix is carried out."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fakes.datasets import put

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key, machine_hash
from bench_agent.doctor import storage, table
from bench_agent.doctor.table import CHECKS, Surroundings, examine
from bench_protocol.real_data.manifest import MANIFEST

MAIN = "from bench_agent.cli.main import main; main()"
AGENT = f"{sys.executable} -c '{MAIN}'"


class Bench:
    """A shell environment in which doctor runs and its fixes are carried out."""

    def __init__(self, folder: Path) -> None:
        self.environment = os.environ | {
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "share"),
            "BENCH_HOME": str(folder / "home"),
            "COLUMNS": "100",
        }
        self.environment.pop("BENCH_SERVER", None)

    def doctor(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        """Exit code and findings."""
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "doctor", "--json", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)["findings"]

    def follow(self, hint: str) -> None:
        """Run a fix in a shell; variables that it exports persist."""
        script = f"{hint}\necho BENCH_HOME=$BENCH_HOME"
        done = subprocess.run(
            ["sh", "-ec", script],
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        self.environment["BENCH_HOME"] = done.stdout.strip().rpartition("BENCH_HOME=")[2]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_keys_that_others_may_read_and_a_key_that_is_none(bench: Bench, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    load_or_create_key(home)
    machine_hash(home, b"x")
    home.key.write_text("nonsense")
    home.salt.chmod(0o660)
    code, findings = bench.doctor("--only", "keys")
    assert (code, [finding["verdict"] for finding in findings]) == (1, ["fail", "fail"])
    for finding in findings:
        bench.follow(finding["hint"])
    assert bench.doctor("--only", "keys")[0] == 0
    load_or_create_key(home)


def test_a_home_that_cannot_be_made(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    bench.environment["BENCH_HOME"] = str(tmp_path / "file" / "home")
    code, (finding,) = bench.doctor("--only", "home")
    assert (code, finding["verdict"]) == (1, "fail")
    bench.follow(finding["hint"])
    assert bench.environment["BENCH_HOME"] == str(tmp_path / "share" / "trainmark")
    code, (finding,) = bench.doctor("--only", "home")
    assert (code, finding["verdict"]) == (0, "ok")
    assert not Path(bench.environment["BENCH_HOME"]).exists()  # looking leaves nothing


@pytest.mark.process
def test_offline(bench: Bench, tmp_path: Path) -> None:
    dead = "http://127.0.0.1:9"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        bench.environment[name] = dead
    bench.environment["BENCH_DATA_DIR"] = str(tmp_path / "data")
    code, (finding,) = bench.doctor("--only", "data")
    assert (code, finding["verdict"]) == (0, "warn")
    planned = finding["hint"].replace("bench-agent run", f"{AGENT} plan --json")
    bench.follow(planned)
    # The other way that it names: files from elsewhere.
    for file in (file for real in MANIFEST for file in real.files):
        with put(tmp_path / "data", file.path, b"").open("wb") as sparse:
            sparse.truncate(file.size_bytes)
    code, findings = bench.doctor("--only", "data")
    assert code == 0
    assert {finding["verdict"] for finding in findings} == {"ok"}
    code, (server, clock) = bench.doctor("--only", "server", "--only", "clock", "--server", dead)
    assert (code, server["verdict"], clock["verdict"]) == (1, "fail", "skip")


def test_a_server_with_another_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    answer = httpx.Response(200, headers={"Date": late})
    monkeypatch.setattr(storage.httpx, "get", lambda *_, **__: answer)
    here = Surroundings(Home(tmp_path), "http://bench.lab/")
    findings = list(examine(here, ("server", "clock")))
    assert [finding.verdict for finding in findings] == ["ok", "fail"]
    assert "ahead" in findings[1].sentence


def test_every_check_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> None:
        raise httpx.ConnectError("offline")

    monkeypatch.setattr(storage.httpx, "head", offline)
    monkeypatch.setattr(table, "probe_each", lambda logs, interpreters: {})
    findings = list(examine(Surroundings(Home(tmp_path / "home"))))
    seen = {finding.id.partition(".")[0] for finding in findings}
    assert seen >= CHECKS.keys() - {"data", "power"}
    assert not (tmp_path / "home").exists()
    for finding in findings:
        assert finding.sentence
        assert "\n" not in (finding.hint or "")


def test_probes_of_an_unusable_home_are_logged_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    here = Surroundings(Home(tmp_path / "file" / "home"))
    assert tmp_path not in here.logs.parents
