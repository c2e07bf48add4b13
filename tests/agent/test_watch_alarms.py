"""``watch`` on simulated histories: rarely an alarm without a change, mostly one with it."""

import pytest
from benchmarks.watch_alarms import HOURLY, QUIET, YEAR, History, share

from bench_agent.watch.history import CellRun
from bench_agent.watch.moved import find

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


def test_verdicts_of_several_set_ups_are_corrected_for_each_other() -> None:
    """A difference that is credible alone (p = 0.04) is none among eight."""

    def history(factor: float) -> list[CellRun]:
        figures = [1000 * (1 + share / 100) for share in (-2, -1, 0, 1, 2)]
        after = [figure * factor for figure in figures]
        return [
            CellRun(f"{n}", f"2026-03-{n:02}", {"driver": "old" if n <= 5 else "new"}, figure)
            for n, figure in enumerate([*figures, *after], 1)
        ]

    alone = find({0: history(1.03)}, 5, {0: "2026-03-09"})[0]
    among = find({n: history(1.0 if n else 1.03) for n in range(8)}, 5, {})[0]
    assert (alone.moved, among.moved) == ("slower", None)
    assert among.verdict is not None
    assert among.verdict.words.startswith("no clear difference among 8 comparisons; alone: takes")
