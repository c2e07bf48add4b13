"""``watch`` on simulated histories: rarely an alarm without a change, mostly one with it."""

import pytest
from benchmarks.watch_alarms import HOURLY, QUIET, YEAR, History, share

FEW, MANY = 20, 400


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "history",
    [
        History(YEAR),
        History(10, change=5),
        pytest.param(History(YEAR, cells=8), marks=pytest.mark.long),
        pytest.param(History(10, change=5, cells=8), marks=pytest.mark.long),
    ],
)
def test_fewer_than_5_percent_of_unchanged_histories_have_an_alarm(
    history: History, count: int
) -> None:
    assert share(history, QUIET, count, seed=1) <= 0.05


def test_a_driver_that_costs_10_percent_is_found() -> None:
    assert share(History(10, change=5, factor=1.1), QUIET, FEW, seed=2) >= 0.9


def test_runs_in_a_row_are_no_independent_runs() -> None:
    """Why a start measures once: five runs of one hour share its state (docs/adr/0020)."""
    in_a_row = share(History(2, runs=5, change=1), HOURLY, 100, seed=3)
    apart = share(History(10, change=5), HOURLY, 100, seed=3)
    assert apart <= 0.05 < 0.1 < in_a_row
