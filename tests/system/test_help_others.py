"""``run --help-others`` beside a real server that asks. The engine alone is a fake."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.projected import settled
from tests.system.conftest import Agent, Ran, Server

from bench_agent.base.home import Home
from bench_agent.machine import read_machine
from bench_server.db.store import Store

ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
ASKED_FOR = "mnist-dense"


def quick(agent: Agent, *arguments: str) -> Ran:
    """The agent with the quick fake engine."""
    program = ROOT / "tests" / "fakes" / "fleet_agent.py"
    done = subprocess.run(
        [sys.executable, program, str(os.getpid()), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=agent.environment(PYTHONPATH=PATHS),
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_an_ask_is_drawn_measured_and_answered(
    agent: Agent, make_server: Callable[[], Server], tmp_path: Path
) -> None:
    server = make_server()
    address = server.start()
    # Somebody has measured one workload on this hardware. The draw is made when a day begins, or a
    # server starts that has not seen its draw yet.
    store = Store(f"sqlite:///{tmp_path / 'server.db'}")
    machine = read_machine(Home(tmp_path / "other"))
    with httpx.Client(base_url=address, timeout=60) as http:
        poster = Poster(http, store)
        poster.enroll()
        cell = results.make_cell(ASKED_FOR, framework="mlx")
        asked_about = poster.made(cell=cell, machine=machine)
    store.close()
    settled(address)
    server.stop()
    server.start(int(address.rsplit(":", 1)[1]))
    ask = wanted(address)
    assert (ask["workload"], ask["result"]) == (ASKED_FOR, asked_about)

    run = ("run", "--preset", "smoke", "--repeats", "4", "--framework", "mlx", "--server", address)
    ran = quick(agent, *run, "--yes", "--help-others", "yes")
    assert ran.code == 0, ran.stderr
    assert f"{address} asks for 1 more:" in ran.stderr
    assert f"A speed by the server's own clock: bench-agent witness --server {address}" in (
        ran.stderr
    )
    sent = agent("status", "--json").json()["sent"]
    (answer,) = (one for one in sent if one["cell"]["workload"] == ASKED_FOR)
    settled(address)
    with httpx.Client(base_url=address, timeout=60) as http:
        identity = answer["answer"]["id"]
        assert http.get(f"/api/v1/results/{identity}").json()["ask_id"] == ask["id"]
        assert "answers an ask of this server" in http.get(f"/results/{identity}").text


def wanted(address: str) -> dict[str, str]:
    """The only ask of the day, once it is drawn."""
    for _ in range(200):
        asks = httpx.get(f"{address}/api/v1/asks", timeout=60).json()["asks"]
        if asks:
            break
        settled(address)
    (ask,) = asks
    return dict(ask)
