"""``bench-agent witness``, its offer at the end of a run, and ``verify``, beside a real server."""

from collections.abc import Callable

import httpx
import pytest
from tests.fakes.projected import settled
from tests.system.conftest import Agent, Server

from bench_agent.base.speed_run import expected_seconds
from bench_agent.cli.witness import OFFERED_SECONDS

SMALL = ("--workload", "fashion-mlp", "--device", "cpu", "--framework", "torch", "--yes")
QUICK = ("--preset", "smoke", "--budget-seconds", "0.5", "--wait-seconds", "0", "--recipe", "tuned")


@pytest.mark.long
def test_a_run_is_witnessed_and_verified(agent: Agent, make_server: Callable[[], Server]) -> None:
    """By ``witness``, and at the end of ``run`` where the machine is fast enough for the offer."""
    pytest.importorskip("torch", reason="torch is not installed")
    address = make_server().start()
    ran = agent("run", *SMALL, *QUICK, "--server", address, "--witness", "--json")
    assert ran.code == 0, ran.stderr
    (measured,) = ran.json()["results"]
    offered = expected_seconds(measured["samples_per_second"]) < OFFERED_SECONDS
    assert offered == ("witnessed: at least" in ran.stderr), ran.stderr
    alone = agent("witness", "--framework", "torch", "--server", address, "--yes", "--json")
    assert alone.code == 0, alone.stderr
    second = alone.json()
    assert second["state"] == "witnessed"
    assert 0 < second["samples_per_second"] <= second["agents_samples_per_second"]

    (sent,) = agent("status", "--json").json()["sent"]
    result = f"{settled(address)}/results/{sent['answer']['id']}"
    said = agent("verify", result)
    assert said.code == 0, said.stderr
    stated = [line for line in said.stdout.splitlines() if "a machine of key" in line]
    assert len(stated) == 1 + offered
    assert f"trained at least {second['samples_per_second']:,} samples/s from " in stated[0]
    assert stated[0].endswith(f"without dropout (entry {second['log_index']})")
    assert "Witnessed: at least" in httpx.get(result).text
