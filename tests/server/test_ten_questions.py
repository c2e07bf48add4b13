"""docs/ten_questions.py answers a buyer's questions on a real server."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.projected import settled

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.readings import Energy
from bench_server.db.store import Store

pytestmark = pytest.mark.sqlite
SCRIPT = Path(__file__).parents[2] / "docs" / "ten_questions.py"


def ask(address: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(SCRIPT), address],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_ten_questions(live_server: str, store: Store) -> None:
    empty = ask(live_server)
    assert (empty.returncode, empty.stderr) == (1, "0 hardware on mnist-cnn: these need two\n")
    with httpx.Client(base_url=live_server, timeout=30) as http:
        post = Poster(http, store)
        post.enroll()
        m2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
        metal = Device(kind="metal")
        for run in (1, 2, 3):
            post.made(run_id=f"{run:032x}", step_ns=1_000_000 + 1000 * run)
            energy = Energy(source="ioreport", scope="soc", energy_mj=30_000, window_ns=10**9)
            cell = results.make_cell(device=metal)
            measurement = results.make_measurement(cell, 250_000 + 100 * run, energy=energy)
            post.made(cell=cell, machine=m2, run_id=f"{run:032x}", measurement=measurement)
        tuned = results.make_cell(device=metal, recipe="tuned")
        for run in (1, 2, 3):
            post.made(cell=tuned, machine=m2, run_id=f"{run:032x}", step_ns=199_998 + run)
        post.made(cell=results.make_cell(device=metal, batch_size=256), machine=m2, step_ns=400_000)
    done = ask(settled(live_server))
    assert (done.returncode, done.stderr) == (0, "")
    answers = done.stdout.splitlines()
    for line, said in zip(
        answers[1:20:2],
        (
            "Apple M2 Max (30-core GPU): 320,000 samples/s",
            "no baseline yet: it needs two owners",
            "times as fast on these two machines (95 % CI",
            "samples/s for each unit of money",
            "Apple M2 Max (30-core GPU): 7 J (soc)",
            "tensorflow tuned on Apple M2 Max (30-core GPU), ahead of tensorflow naive",
            "is 5.01 times as fast as Intel Core i7-8700",
            "batch 256: 640,000 samples/s",
            "3 runs on 1 machines of 1 owners, trust level",
            "no change in 3 results",
        ),
        strict=True,
    ):
        assert said in line
    assert "The board as CSV has 2 rows" in answers[-1]
