"""End to end: the command line trains real models, signs, posts, and the page shows the results."""

import subprocess
import sys
from collections.abc import Callable
from html import unescape

import httpx
import pytest
from tests.fakes.projected import settled
from tests.system.conftest import Agent, Server

from bench_protocol.payload import statement
from bench_protocol.signing import envelope

AT_ONCE = ("--wait-seconds", "0")
SMALL = ("--workload", "mnist-dense", "--device", "cpu", "--budget-seconds", "0.5")

MLX_NAIVE = ("--framework", "mlx", "--recipe", "naive")


@pytest.mark.smoke
def test_measured_signed_posted_and_shown(agent: Agent, make_server: Callable[[], Server]) -> None:
    server = make_server()
    address = server.start()
    chosen = (*SMALL, *AT_ONCE, "--framework", "tensorflow", "--framework", "mlx")
    once = ("--preset", "smoke", *chosen, "--recipe", "naive")
    ran = agent("run", *once, "--server", address, "--yes", "--json")
    assert ran.code == 0, ran.stderr
    results = ran.json()["results"]
    assert ran.json()["rank"] == "in the only machine measured on mnist-dense here"
    assert httpx.get(ran.json()["machine_page"]).status_code == 200
    assert {r["cell"]["framework"] for r in results} == {"tensorflow", "mlx"}
    assert all(r["status"] == "measured" and r["samples_per_second"] > 0 for r in results)

    sent = agent("status", "--json").json()["sent"]
    assert len(sent) == 2
    with httpx.Client(base_url=settled(address)) as http:
        for entry in sent:
            identifier = entry["answer"]["id"]
            stored = http.get(f"/api/v1/results/{identifier}").json()
            assert stored["cell"] == entry["cell"]
            raw = http.get(f"/api/v1/results/{identifier}/envelope").content
            stored_file = agent.home / "outbox" / "sent" / entry["file"]
            assert raw == stored_file.read_bytes()
            opened = envelope.read(raw)
            result = statement.parse_result(opened.payload)
            assert result.outcome.status == "measured"
            page = unescape(http.get(f"/results/{identifier}").text)
            assert "mnist-dense" in page
            assert "generated" in page
        board = http.get("/api/v1/leaderboard", params={"workload": "mnist-dense"}).json()
        assert len(board["rows"]) == 1
        front = unescape(http.get("/", params={"workload": "mnist-dense"}).text)
        assert board["rows"][0]["hardware"] in front


def test_results_wait_while_the_server_is_away_and_are_sent_once(
    agent: Agent, make_server: Callable[[], Server]
) -> None:
    server = make_server()
    address = server.start()
    server.stop()
    one = ("--preset", "smoke", *SMALL, *AT_ONCE, *MLX_NAIVE)
    ran = agent("run", *one, "--server", address, "--yes")
    assert ran.code == 3
    assert f"bench-agent submit --server {address}" in ran.stderr
    assert len(agent("status", "--json").json()["pending"]) == 1

    port = int(address.rsplit(":", 1)[1])
    away = agent("submit", "--yes", "--server", address)
    assert away.code == 3
    assert "0 sent, 1 pending in the outbox" in away.stderr
    server.start(port)
    first = agent("submit", "--yes", "--server", address, "--json")
    assert first.code == 0, first.stderr
    assert len(first.json()["sent"]) == 1
    assert agent("submit", "--yes", "--server", address, "--json").json() == {
        "sent": [],
        "refused": [],
    }
    assert len(httpx.get(f"{address}/api/v1/results").json()["results"]) == 1


@pytest.mark.parametrize(
    ("imported", "heavy"),
    [
        ("", ("numpy", "pydantic", "httpx", "psutil", "rich")),
        (
            "import bench_agent.run.run, bench_agent.plan.plan, bench_agent.output.documents;"
            "from bench_agent import engines; [engines.engine_named(n) for n in engines.names()];",
            ("tensorflow", "keras", "mlx", "jax", "torch"),
        ),
    ],
)
def test_help_imports_nothing_heavy_and_a_run_no_framework(
    imported: str, heavy: tuple[str, ...]
) -> None:
    code = f"import sys, bench_agent.cli.main;{imported}print({{*{heavy}}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
