"""Disturbed results: which they are, and that they stay out of figures while others are there."""

import pytest
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.payload import doubts
from bench_protocol.payload.result import Warn
from bench_server.db.store import Store
from bench_server.projection import reindex

LOAD = Warn(code="other_load", figures={"busy_cores": 12.0, "cores": 12.0})
HEAT = {"share_of_samples": 0.4}


@pytest.mark.parametrize(
    ("warn", "disturbed"),
    [
        (LOAD, True),
        (Warn(code="not_idle", figures={"cpu_percent": 60.0}), True),
        (Warn(code="thermal_pressure", figures=HEAT | {"worst_level": 2.0}), True),
        (Warn(code="cpu_throttled", figures={"times": 3.0}), True),
        (Warn(code="throttled", figures=HEAT | {"reason_bits": float(0x04 | 0x20)}), True),
        (Warn(code="throttled", figures=HEAT), True),
        (Warn(code="throttled", figures=HEAT | {"reason_bits": float(0x04)}), False),
        (Warn(code="few_blocks", figures={"blocks": 3.0}), False),
        (Warn(code="unsteady", figures={"spread": 0.4}), False),
        (Warn(code="hot"), False),
        (Warn(code="of_another_version"), False),
    ],
)
def test_other_programs_and_heat_disturb(warn: Warn, disturbed: bool) -> None:
    """A power limit alone does not: so the GPU runs under this load."""
    assert bool(doubts.disturbances([warn])) is disturbed
    assert doubts.disturbances([Warn(code="few_blocks"), warn]) == [warn] * disturbed


@pytest.fixture
def owners(post: Poster) -> Poster:
    """Two owners, each with a machine of the same hardware."""
    post.enroll(results.private_key(2))
    return post


def measure(post: Poster, seed: int, step_ns: int, *warnings: Warn) -> str:
    key, machine = results.private_key(seed), results.make_machine(seed=seed)
    return post.made(key=key, machine=machine, step_ns=step_ns, warnings=warnings)


def row(post: Poster) -> dict[str, object]:
    (only,) = post.http.get("/api/v1/leaderboard?workload=mnist-cnn").json()["rows"]
    return dict(only)


def test_a_busy_machine_does_not_make_a_figure_nobody_measured(
    owners: Poster, store: Store
) -> None:
    """The case of the review: 40 times apart, where one machine was at 100 %."""
    quiet = measure(owners, 1, 1_000_000)
    busy = measure(owners, 2, 40_000_000, LOAD)
    shown = row(owners)
    assert shown["result_id"] == quiet
    assert shown["samples_per_second"] == pytest.approx(64_000, rel=1e-3)
    assert (shown["left_out"], shown["disturbed"], shown["unsteady"]) == (1, False, False)
    assert (shown["owners"], shown["repeats"]) == (2, 1)
    board = owners.http.get("/?workload=mnist-cnn").text
    assert "1 disturbed repeat not counted" in board
    assert "machines disagree" not in board
    assert owners.http.get(f"/api/v1/results/{busy}").json()["disturbed"] is True
    page = " ".join(owners.http.get(f"/results/{busy}").text.split())
    assert "Disturbed, so not in the figure.</strong> Other programs kept 12.0 of 12 cores" in page
    assert "Disturbed" not in owners.http.get(f"/results/{quiet}").text
    reindex.reindex(store)
    assert row(owners) | {"newest_at": 0} == shown | {"newest_at": 0}


def test_disturbed_results_count_where_there_are_no_others(owners: Poster) -> None:
    alone = measure(owners, 2, 40_000_000, LOAD)
    shown = row(owners)
    assert (shown["result_id"], shown["disturbed"], shown["left_out"]) == (alone, True, 0)
    assert ">disturbed</span>" in owners.http.get("/?workload=mnist-cnn").text
    page = " ".join(owners.http.get(f"/results/{alone}").text.split())
    assert "Disturbed.</strong>" in page
    assert "It counts, because this hardware has no undisturbed result" in page
    better = measure(owners, 2, 1_000_000)
    assert row(owners)["result_id"] == better
    assert "so not in the figure" in owners.http.get(f"/results/{alone}").text


def test_machines_that_disagree_say_so_with_their_range(owners: Poster) -> None:
    measure(owners, 1, 1_000_000)
    slow = measure(owners, 2, 40_000_000)
    shown = row(owners)
    assert shown["result_id"] == slow
    assert shown["samples_per_second"] == pytest.approx(1_600, rel=1e-3)
    assert (shown["spread_between"], shown["unsteady"]) == ("machines", True)
    assert shown["spread"] == pytest.approx(0.975, abs=0.001)
    board = owners.http.get("/?workload=mnist-cnn").text
    assert "machines disagree: 1,600 to 64,000/s" in board
    assert ">unsteady</span>" in board
    assert 'title="between machines">machines</span>' in board


def test_machines_that_agree_say_nothing(owners: Poster) -> None:
    for seed in (1, 2):
        measure(owners, seed, 1_000_000 + 100_000 * seed)
    shown = row(owners)
    assert (shown["spread_between"], shown["unsteady"]) == ("machines", False)
    assert shown["slowest_machine_samples_per_second"] == shown["samples_per_second"]
    assert "machines disagree" not in owners.http.get("/?workload=mnist-cnn").text
