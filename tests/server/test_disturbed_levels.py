"""The runs of a machine's history, its feed and trends: disturbed ones beside others."""

import itertools

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.payload.machine import Environment
from bench_protocol.payload.result import Warn
from bench_server.answers import runs
from bench_server.db.store import Store
from bench_server.db.tables import Measurement

LOAD = Warn(code="other_load", figures={"busy_cores": 3.0, "cores": 8.0})
WAVE = (0, 3, -2, 1, -1, 2)


def _run(
    post: Poster,
    day: int,
    step_ns: int,
    version: str = "2.18.0",
    machine: int = 1,
    disturbed: bool = False,
) -> str:
    """A run of one repeat. Returns the result's id."""
    return post.made(
        machine=results.make_machine(seed=machine),
        step_ns=step_ns,
        warnings=(LOAD,) if disturbed else (),
        clocks=results.clocks_from(day),
        environment=Environment(python="3.12.7", packages={"tensorflow": version}),
    )


def _machine_id(http: TestClient, result: str) -> str:
    identity: str = http.get(f"/api/v1/results/{result}").json()["machine_id"]
    return identity


def test_a_busy_machine_is_no_change(http: TestClient, post: Poster) -> None:
    """Six busy days after six idle ones: the level is that of the idle days."""
    for day, off in enumerate(WAVE, 1):
        _run(post, day, 1_000_000 + 500 * off)
    for day, off in enumerate(WAVE, 7):
        last = _run(post, day, 1_500_000 + 500 * off, disturbed=True)
    machine = _machine_id(http, last)
    history = http.get(f"/api/v1/machines/{machine}/history").json()
    assert (history["changes"], history["left_out"]) == ([], 6)
    assert [point["disturbed"] for point in history["points"]] == [False] * 6 + [True] * 6
    assert "#change" not in http.get(f"/machines/{machine}/feed.atom").text
    page = http.get(f"/machines/{machine}").text
    assert "6 disturbed repeats not counted in levels and changes" in page
    assert "/s on 2026-10-07, median of 1, disturbed<" in page


def test_one_run_is_no_history(http: TestClient, post: Poster) -> None:
    """A chart needs two points."""
    chart = "samples per second, run by run"
    machine = _machine_id(http, _run(post, 1, 1_000_000))
    page = http.get(f"/machines/{machine}").text
    assert "1 run. A change of level needs four runs or more on each side" in page
    assert chart not in page.lower()
    _run(post, 2, 1_000_000)
    page = http.get(f"/machines/{machine}").text
    assert "2 runs; no change of level is found among them." in page
    assert chart in page.lower()


def test_an_update_is_measured_without_the_busy_days(http: TestClient, post: Poster) -> None:
    """History, feed and trends give one figure, that of the undisturbed runs."""
    days = iter(range(1, 27))
    sent = []
    for version, step_ns in (("2.18.0", 1_000_000), ("2.18.1", 900_000)):
        for off in WAVE:
            sent.append(_run(post, next(days), step_ns + 500 * off, version))
        for off in WAVE:
            _run(post, next(days), 1_400_000 + 500 * off, version, disturbed=True)
    machine = _machine_id(http, sent[-1])
    history = http.get(f"/api/v1/machines/{machine}/history").json()
    (change,) = history["changes"]
    assert change["speed_up"] == pytest.approx(1_000_500 / 900_500, rel=1e-9)
    assert change["result_id"] == sent[6]
    assert history["left_out"] == 12
    assert http.get(f"/machines/{machine}/feed.atom").text.count("#change") == 1
    old, new = http.get("/api/v1/trends").json()["versions"]
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
        _run(post, 1, machine * 1_000_000, "2.18.0", machine)
        _run(post, 2, machine * 800_000 + machine, "2.18.1", machine)
    _run(post, 1, 1_000_000, "2.18.0", 4)
    _run(post, 2, 3_000_000, "2.18.1", 4, disturbed=True)
    update = http.get("/api/v1/trends").json()["versions"][1]["update"]
    assert update["compared"]["speed_up"] == pytest.approx(1.25, rel=1e-3)
    assert (update["compared"]["n"], update["left_out"], update["only_one"]) == (3, 1, 0)
    assert "1 machine with both versions not counted: disturbed" in http.get("/trends").text


def test_disturbed_runs_make_the_levels_where_there_are_no_others(
    http: TestClient, post: Poster
) -> None:
    for stage, step_ns in enumerate((1_000_000, 900_000)):
        for day, off in enumerate(WAVE, 1 + 6 * stage):
            last = _run(post, day, step_ns + 500 * off, disturbed=True)
    history = http.get(f"/api/v1/machines/{_machine_id(http, last)}/history").json()
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
        machine = session.get_one(Measurement, last).machine_id
        found = runs.runs_of(session, machine, last)
    assert [run[0].started_at.day for run in found] == days
