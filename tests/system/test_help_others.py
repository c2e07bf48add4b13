"""``run --help-others`` beside a real server that asks."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.projected import settled
from tests.system.conftest import Agent, Server

from bench_agent.base.home import Home
from bench_agent.machine import read_machine
from bench_agent.plan.estimates import CellTimes, MeasuredTimes
from bench_protocol.catalogue.matrix import Cell, Device
from bench_server.db.store import Store

OWN, ASKED_FOR = "fashion-mlp", "mnist-dense"
QUICK = ("--preset", "smoke", "--budget-seconds", "0.5", "--wait-seconds", "0", "--yes", "--json")


@pytest.mark.long
def test_an_ask_is_drawn_measured_and_answered(
    agent: Agent, make_server: Callable[[], Server], tmp_path: Path
) -> None:
    server = make_server()
    address = server.start()
    # Somebody has measured one workload on this hardware. The draw is made when a day begins, or a
    # server starts that has not drawn on that day.
    store = Store(f"sqlite:///{tmp_path / 'server.db'}")
    machine = read_machine(Home(tmp_path / "other"))
    with httpx.Client(base_url=address, timeout=60) as http:
        poster = Poster(http, store)
        poster.enroll()
        asked_about = poster.made(cell=cell_of(ASKED_FOR), machine=machine)
    store.close()
    settled(address)
    server.stop()
    server.start(int(address.rsplit(":", 1)[1]))
    ask = wanted(address)
    assert (ask["workload"], ask["result"]) == (ASKED_FOR, asked_about)

    expect(Home(agent.home), {OWN: 100.0, ASKED_FOR: 0.1})
    own = ("--framework", "mlx", "--device", "cpu", "--workload", OWN, "--recipe", "tuned")
    ran = agent("run", *QUICK, *own, "--server", address, "--help-others", "yes")
    assert ran.code == 0, ran.stderr
    assert f"{address} asks for 1 more:\n  {cell_of(ASKED_FOR)}" in ran.stderr

    sent = agent("status", "--json").json()["sent"]
    (answer,) = (one for one in sent if one["cell"]["workload"] == ASKED_FOR)
    settled(address)
    with httpx.Client(base_url=address, timeout=60) as http:
        identity = answer["answer"]["id"]
        assert http.get(f"/api/v1/results/{identity}").json()["ask_id"] == ask["id"]
        assert "answers an ask of this server" in http.get(f"/results/{identity}").text


def expect(home: Home, seconds: dict[str, float]) -> None:
    """Let a repeat of a workload seem to take so long, so that one is a tenth of another."""
    times = {
        cell_of(workload).digest: CellTimes(
            framework="mlx",
            device=Device(kind="cpu"),
            step_flops=1e6,
            step_seconds=1e-4,
            overhead_seconds=overhead,
            tried_to_settle=True,
        )
        for workload, overhead in seconds.items()
    }
    home.measured_times.parent.mkdir(parents=True, exist_ok=True)
    home.measured_times.write_text(MeasuredTimes(cells=times).model_dump_json())


def cell_of(workload: str) -> Cell:
    recipe = "tuned" if workload == OWN else "naive"
    return results.make_cell(workload, framework="mlx", recipe=recipe)


def wanted(address: str) -> dict[str, str]:
    for _ in range(200):
        asks = httpx.get(f"{address}/api/v1/asks", timeout=60).json()["asks"]
        if asks:
            break
        settled(address)
    (ask,) = asks
    return dict(ask)
