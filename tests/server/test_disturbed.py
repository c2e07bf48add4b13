"""Disturbed results: which they are, and that they stay out of figures while others are there."""

import pytest
from tests.fakes import results
from tests.fakes.client import Poster, get

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
        (Warn(code="of_another_version"), False),
    ],
)
def test_other_programs_and_heat_disturb(warn: Warn, disturbed: bool) -> None:
    """A power limit alone does not: so the GPU runs under this load."""
    assert bool(doubts.disturbances([warn])) is disturbed
    assert doubts.disturbances([Warn(code="few_blocks"), warn]) == [warn] * disturbed


@pytest.fixture
def owners(post: Poster) -> Poster:
    post.enroll(results.private_key(2))
    return post


def page(post: Poster, address: str) -> str:
    return " ".join(post.http.get(address).raise_for_status().text.split())


BOARD = "/?workload=mnist-cnn"


def measure(post: Poster, seed: int, step_ns: int, *warnings: Warn) -> str:
    key, machine = results.private_key(seed), results.make_machine(seed=seed)
    return post.made(key=key, machine=machine, step_ns=step_ns, warnings=warnings)


def row(post: Poster) -> dict[str, object]:
    (only,) = get(post.http, "/leaderboard?workload=mnist-cnn")["rows"]
    return dict(only)


def test_disturbed_results_count_only_where_there_are_no_others(
    owners: Poster, store: Store
) -> None:
    """The case of the review: 40 times apart, where one machine was at 100 %."""
    busy = measure(owners, 2, 40_000_000, LOAD)
    alone = row(owners)
    assert (alone["result_id"], alone["disturbed"], alone["left_out"]) == (busy, True, 0)
    assert ">disturbed</span>" in page(owners, BOARD)
    assert "Disturbed.</strong>" in page(owners, f"/results/{busy}")
    why = "It counts, because this hardware has no undisturbed result"
    assert why in page(owners, f"/results/{busy}")
    quiet = measure(owners, 1, 1_000_000)
    shown = row(owners)
    counted = {"left_out": 1, "disturbed": False, "unsteady": False, "owners": 2, "repeats": 1}
    assert shown.items() >= (counted | {"result_id": quiet}).items()
    assert shown["samples_per_second"] == pytest.approx(64_000, rel=1e-3)
    assert "1 disturbed repeat not counted" in page(owners, BOARD)
    assert "machines disagree" not in page(owners, BOARD)
    assert get(owners.http, f"/results/{busy}")["disturbed"] is True
    why = "Disturbed, so not in the figure.</strong> Other programs kept 12.0 of 12 cores"
    assert why in page(owners, f"/results/{busy}")
    assert "Disturbed" not in page(owners, f"/results/{quiet}")
    reindex.reindex(store)
    assert row(owners) | {"newest_at": 0} == shown | {"newest_at": 0}


def test_machines_that_disagree_say_so_with_their_range(owners: Poster) -> None:
    for seed in (1, 2):
        measure(owners, seed, 1_000_000 + 100_000 * seed)
    agreeing = row(owners)
    assert (agreeing["spread_between"], agreeing["unsteady"]) == ("machines", False)
    assert agreeing["slowest_machine_samples_per_second"] == agreeing["samples_per_second"]
    assert "machines disagree" not in page(owners, BOARD)
    slow = [measure(owners, 2, 40_000_000) for _ in range(2)]
    shown = row(owners)
    assert shown["result_id"] in slow
    assert shown["samples_per_second"] == pytest.approx(1_600, rel=1e-3)
    assert (shown["spread_between"], shown["unsteady"]) == ("machines", True)
    board = page(owners, BOARD)
    assert "machines disagree: 1,600 to 58,182 samples/s" in board
    assert ">unsteady</span>" in board
    assert 'title="between machines">machines</span>' in board
