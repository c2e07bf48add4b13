"""``bench-agent watch`` reads the history of a machine as the server answers it."""

import httpx
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster

from bench_agent.remote.client import Client
from bench_agent.remote.rank import change_words, histories
from bench_protocol.payload.machine import Environment


def test_the_agent_shows_the_newest_change_of_each_set_up(http: TestClient, post: Poster) -> None:
    made = results.make_result()
    for day in range(1, 11):
        last = post.made(
            step_ns=1_000_000 + 500 * day + 100_000 * (day > 5),
            environment=Environment(python=f"3.12.{5 + (day > 5)}", packages={"mlx": "0.29"}),
            clocks=results.clocks_from(day),
        )
    machine_id = http.get(f"/api/v1/results/{last}").json()["machine_id"]
    other = results.make_result(cell=results.make_cell(recipe="tuned"))
    client = Client(
        "http://server",
        None,
        transport=httpx.MockTransport(lambda asked: http.get(asked.url.raw_path.decode())),
    )
    found = histories(client, machine_id, [made, other])
    assert change_words(found[made.cell], "macos") == (
        "9.3 % slower since 2026-10-06 (95 % CI 8.6 to 9.9 % slower): python 3.12.5 became 3.12.6"
    )
    assert change_words(found[other.cell], "macos") == "the server has no ranked run"
