"""Privacy: no name of a person or machine is stored, logged, shown or sent."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from tests.fakes.planted_agent import MACHINE_ID, PLANTED, RECORDED, USER
from tests.system.conftest import Agent, Operator, Ran, Server

PLANTED_AGENT = Path(__file__).parents[1] / "fakes" / "planted_agent.py"
RUN = (
    "run", "--preset", "smoke", "--workload", "fashion-mlp", "--framework", "mlx",
    "--device", "cpu", "--recipe", "naive", "--budget-seconds", "0.5", "--yes", "--json", "--fresh",
    "--wait-seconds", "0",
)  # fmt: skip
# Every worker prints the words, and one that shall crash raises them.
SITE = f"""
import os, sys, traceback
WORDS = " ".join([{" ".join(PLANTED)!r}, *map(os.environ.get, ("HOME", "OMP_CRASH"), ("", ""))])
if "bench_agent.worker" in " ".join(sys.orig_argv):
    print(WORDS, file=sys.stderr)
    if os.environ.get("OMP_CRASH"):
        class Crash:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "mlx":
                    if all(frame.name != "probe" for frame in traceback.extract_stack()):
                        raise RuntimeError(WORDS)
        sys.meta_path.insert(0, Crash())
"""


@pytest.fixture
def planted(agent: Agent, tmp_path: Path) -> Callable[..., Ran]:
    home, site = tmp_path / "home" / USER, tmp_path / "site"
    home.mkdir(parents=True)
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    words = {
        "HOME": str(home),
        "USER": USER,
        "LOGNAME": USER,
        "HOSTNAME": PLANTED[0],
        "BENCH_SERIAL": PLANTED[2],
        "TF_SECRET": PLANTED[2],
        "OMP_PLACES": f"{home}/places",
        "PYTHONPATH": os.pathsep.join(paths),
    }

    def run(system: str, *arguments: str, **more: str) -> Ran:
        done = subprocess.run(
            [sys.executable, PLANTED_AGENT, system, tmp_path / "root", *arguments],
            capture_output=True,
            text=True,
            timeout=240,
            env=agent.environment(**words, **more),
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.mark.parametrize("system", ["linux", pytest.param("macos", marks=pytest.mark.long)])
def test_no_stored_byte_names_person_or_machine(
    system: str,
    agent: Agent,
    planted: Callable[..., Ran],
    make_server: Callable[[], Server],
    tmp_path: Path,
) -> None:
    server = make_server()
    address = server.start()
    measured = planted(system, *RUN, "--server", address)
    assert measured.code == 0, measured.stderr
    crashed = planted(system, *RUN, "--server", address, OMP_CRASH="1")
    assert crashed.code == 1, crashed.stderr
    (good,), (bad,) = measured.json()["results"], crashed.json()["results"]
    assert (good["status"], bad["status"]) == ("measured", "failed")
    logs = b"".join(path.read_bytes() for path in agent.home.rglob("*.log"))
    assert PLANTED[0].encode() in logs  # it was there to be found
    texts = dict(_shown(address))
    assert ("XPS 15" if system == "linux" else "Mac14,9") in texts["machine facts"]
    texts |= _dumps(Operator(f"sqlite:///{tmp_path / 'server.db'}", tmp_path), tmp_path)
    server.stop()
    stored = [*tmp_path.glob("server.*"), *agent.home.glob("outbox/*/*")]
    assert {".db", ".log", ".json", ".answer"} <= {path.suffix for path in stored}
    texts |= {str(path): path.read_bytes().decode("latin-1") for path in stored}
    texts |= {"results of both runs": json.dumps([good, bad])}
    for place, text in texts.items():
        for word in _words(tmp_path):
            assert word.lower() not in text.lower(), (place, word)


@pytest.mark.parametrize("system", [pytest.param("linux", marks=pytest.mark.long), "macos"])
def test_a_bundle_names_no_person_and_no_machine(
    system: str, agent: Agent, planted: Callable[..., Ran], tmp_path: Path
) -> None:
    secrets = {
        "HTTPS_PROXY": "http://anna-proxy:p%40ss-planted@127.0.0.1:9",
        "WANDB_API_KEY": "planted-wandb-0123",
        "COMPANY_PROJECT": "planted-project-x",
        "PIP_INDEX_URL": "https://deploy-planted:tok-planted@packages.planted.example/simple",
    }
    crashed = planted(system, *RUN, OMP_CRASH=" ".join(secrets.values()), **secrets)
    assert crashed.code == 1, crashed.stderr
    path = tmp_path / "home" / USER / "bundle.txt"
    ran = planted(system, "doctor", "--bundle", str(path), **secrets)
    text = path.read_text()
    logs = b"".join(log.read_bytes() for log in agent.home.rglob("*.log")).decode()
    assert all(word in logs for word in (*PLANTED, "p%40ss-planted", "tok-planted"))
    assert "Traceback" in text
    assert "RuntimeError" in text
    assert "mlx" in text
    known = {*PLANTED} - ({*RECORDED} if system == "linux" else {MACHINE_ID})
    for word in (*known, *secrets.values(), "p@ss", "tok-planted", "deploy-p"):
        assert word.lower() not in text.lower(), word
    for word in (str(tmp_path), "packages.planted", *_words(tmp_path)[len(PLANTED) :]):
        assert word.lower() not in text.lower(), word
    assert str(path) in ran.stderr
    assert all(part in ran.stderr for part in ("findings", "machine", "last run      1 repeat, 1"))
    assert len(ran.stderr.splitlines()) < 24


def _words(tmp_path: Path) -> list[str]:
    words = [*PLANTED, str(tmp_path / "home" / USER)]
    for name in ("/etc/machine-id", "/sys/class/dmi/id/product_uuid"):
        if os.access(name, os.R_OK):
            words.append(Path(name).read_text().strip())
    # A short host name, or one that many share, is part of other words too.
    host = socket.gethostname()
    return [word for word in (*words, host) if len(word) > 7 and word != "localhost"]


def _shown(address: str) -> Iterator[tuple[str, str]]:
    with httpx.Client(base_url=address, timeout=60) as http:
        rows = http.get("/api/v1/results").json()["results"]
        assert len(rows) == 2
        pages = ["/", "/log", "/metrics", "/feed.atom"]
        pages += ["/api/v1/log/entries", "/api/v1/leaderboard"]
        for row in rows:
            of_result = f"/api/v1/results/{row['id']}"
            pages += [f"/results/{row['id']}", of_result, f"{of_result}/envelope"]
        pages += re.findall(r'href="(/[^"#]*)"', http.get("/").text)
        measured = next(row for row in rows if row["status"] == "measured")
        pages += [f"/machines/{measured['machine_id']}", f"/hardware/{measured['hardware_slug']}"]
        for page in dict.fromkeys(pages):
            answer = http.get(page.replace("&amp;", "&"))
            assert answer.status_code == 200, page
            yield page, answer.text
        signed = http.get(f"/api/v1/results/{measured['id']}").json()["result"]
        yield "machine facts", json.dumps(signed["machine"])


def _dumps(operator: Operator, folder: Path) -> dict[str, str]:
    tables = {}
    for suffix in ("csv", "jsonl", "parquet"):
        file = folder / f"dump.{suffix}"
        assert operator("export", str(file)).code == 0
        table = str(pq.read_table(file).to_pylist()) if suffix == "parquet" else file.read_text()
        assert "fashion-mlp" in table
        tables[file.name] = table
    return tables
