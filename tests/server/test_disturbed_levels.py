"""The runs of a machine's history, its feed and trends: disturbed ones beside others."""

import itertools
from collections.abc import Iterable

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster, get

from bench_protocol.payload.machine import Environment
from bench_protocol.payload.result import Warn
from bench_server.answers import runs
from bench_server.db.store import Store
from bench_server.db.tables import Measurement

LOAD = Warn(code="other_load", figures={"busy_cores": 3.0, "cores": 8.0})
WAVE = (0, 3, -2, 1, -1, 2)


def measured(
    post: Poster, days: Iterable[int], step_ns: int, version: str = "2.18.0", machine: int = 1,
    *warnings: Warn,
) -> list[str]:  # fmt: skip
    return [
        post.made(
            machine=results.make_machine(seed=machine),
            step_ns=step_ns + 500 * WAVE[place % 6],
            warnings=warnings,
            clocks=results.clocks_from(day),
            environment=Environment(python="3.12.7", packages={"tensorflow": version}),
        )
        for place, day in enumerate(days)
    ]


def machine_of(http: TestClient, result: str) -> str:
    return str(get(http, f"/results/{result}")["machine_id"])


def test_one_run_is_no_history(http: TestClient, post: Poster) -> None:
    chart = "samples per second, run by run"
    machine = machine_of(http, *measured(post, [1], 1_000_000))
    page = http.get(f"/machines/{machine}").text
    assert "1 run. A change of level needs four runs or more on each side" in page
    assert chart not in page.lower()
    measured(post, [2], 1_000_000)
    page = http.get(f"/machines/{machine}").text
    assert "2 runs; no change of level is found among them." in page
    assert chart in page.lower()


def test_an_update_is_measured_without_the_busy_days(http: TestClient, post: Poster) -> None:
    """History, feed and trends give one figure, that of the undisturbed runs."""
    for days, version, step_ns in ((1, "2.18.0", 1_000_000), (13, "2.18.1", 900_000)):
        first, *_ = measured(post, range(days, days + 6), step_ns, version)
        measured(post, range(days + 6, days + 12), 1_400_000, version, 1, LOAD)
    machine = machine_of(http, first)
    history = get(http, f"/machines/{machine}/history")
    (change,) = history["changes"]
    assert change["speed_up"] == pytest.approx(1_000_500 / 900_500, rel=1e-9)
    assert change["result_id"] == first
    assert history["left_out"] == 12
    assert [point["disturbed"] for point in history["points"]] == ([False] * 6 + [True] * 6) * 2
    assert http.get(f"/machines/{machine}/feed.atom").text.count("#change") == 1
    page = http.get(f"/machines/{machine}").text
    assert "12 disturbed repeats not counted in levels and changes" in page
    assert "/s on 2026-10-07, median of 1, disturbed<" in page
    old, new = get(http, "/trends")["versions"]
    update = new["update"]
    assert update["compared"]["speed_up"] == pytest.approx(change["speed_up"], rel=1e-9)
    assert update["left_out"] == 0
    assert [(one["disturbed"], one["left_out"]) for one in (old, new)] == [(False, 6)] * 2
    assert "6 disturbed repeats not counted" in http.get("/trends").text


def test_a_machine_that_was_busy_under_one_version_is_left_out(
    http: TestClient, post: Poster
) -> None:
    """Three idle machines become 1.25 times as fast; the fourth was busy after its update."""
    for machine in (1, 2, 3):
        measured(post, [1], machine * 1_000_000, "2.18.0", machine)
        measured(post, [2], machine * 800_000 + machine, "2.18.1", machine)
    measured(post, [1], 1_000_000, "2.18.0", 4)
    measured(post, [2], 3_000_000, "2.18.1", 4, LOAD)
    update = get(http, "/trends")["versions"][1]["update"]
    assert update["compared"]["speed_up"] == pytest.approx(1.25, rel=1e-3)
    assert (update["compared"]["n"], update["left_out"], update["only_one"]) == (3, 1, 0)
    assert "1 machine with both versions not counted: disturbed" in http.get("/trends").text


def test_disturbed_runs_make_the_levels_where_there_are_no_others(
    http: TestClient, post: Poster
) -> None:
    measured(post, range(1, 7), 1_000_000, "2.18.0", 1, LOAD)
    last, *_ = measured(post, range(7, 13), 900_000, "2.18.0", 1, LOAD)
    history = get(http, f"/machines/{machine_of(http, last)}/history")
    (change,) = history["changes"]
    assert change["speed_up"] == pytest.approx(1_000_500 / 900_500, rel=1e-9)
    assert history["left_out"] == 0


@pytest.mark.parametrize(("most", "days"), [(6, [1, 2]), (5, [2]), (4, [2]), (3, [2]), (1, [2])])
def test_a_run_of_which_the_limit_leaves_a_part_is_left_out(
    post: Poster, store: Store, monkeypatch: pytest.MonkeyPatch, most: int, days: list[int]
) -> None:
    """Its median would differ from its figure; a single run stays."""
    for day, repeat in itertools.product((1, 2), (1, 2, 3)):
        clocks = results.clocks_from(day, repeat)
        last = post.made(run_id=f"{day:032x}", repeat=repeat, clocks=clocks)
    monkeypatch.setattr(runs, "MOST_RESULTS", most)
    with store.reading() as session:
        found = runs.runs_of(session, session.get_one(Measurement, last).machine_id, last)
    assert [run[0].started_at.day for run in found] == days
