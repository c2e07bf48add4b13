"""``bench-agent doctor`` in deliberately broken environments; each fix is carried out."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key, machine_hash
from bench_agent.cli.main import app
from bench_agent.doctor import table
from bench_agent.doctor.table import CHECKS, Surroundings, examine


class Bench:
    def __init__(self, folder: Path) -> None:
        self.environment = os.environ | {
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "share"),
            "BENCH_HOME": str(folder / "home"),
            "COLUMNS": "100",
        }

    def doctor(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        done = CliRunner(env=self.environment).invoke(app, ["doctor", "--json", *arguments])
        return done.exit_code, json.loads(done.stdout)["findings"]

    def follow(self, hint: str) -> None:
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


def test_every_check_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "probe_each", lambda logs, interpreters: {})
    findings = list(examine(Surroundings(Home(tmp_path / "home"))))
    assert {finding.id.partition(".")[0] for finding in findings} >= CHECKS.keys() - {"power"}
    assert not (tmp_path / "home").exists()
    for finding in findings:
        assert finding.sentence
        assert "\n" not in (finding.hint or "")


def test_probes_of_an_unusable_home_are_logged_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    here = Surroundings(Home(tmp_path / "file" / "home"))
    assert tmp_path not in here.logs.parents
