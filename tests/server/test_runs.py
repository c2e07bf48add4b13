"""Which runs a machine's history reads."""

import pytest
from tests.fakes import results
from tests.fakes.client import Poster

from bench_server.answers import runs
from bench_server.db.store import Store
from bench_server.db.tables import Measurement


def _run(post: Poster, day: int) -> str:
    """A run of three repeats. Returns the last one's id."""
    clocks = results.make_result().clocks
    for repeat in (1, 2, 3):
        started = f"2026-10-{day:02d}T00:0{repeat}:00.000000Z"
        last = post.made(
            run_id=f"{day:032x}",
            repeat=repeat,
            clocks=clocks.model_copy(update={"started": started}),
        )
    return last


@pytest.mark.parametrize(("most", "days"), [(6, [1, 2]), (5, [2]), (4, [2]), (3, [2]), (1, [2])])
def test_a_run_of_which_the_limit_leaves_a_part_is_left_out(
    post: Poster, store: Store, monkeypatch: pytest.MonkeyPatch, most: int, days: list[int]
) -> None:
    """Its median would differ from its figure; a single run stays."""
    _run(post, 1)
    last = _run(post, 2)
    monkeypatch.setattr(runs, "MOST_RESULTS", most)
    with store.reading() as session:
        machine = session.get_one(Measurement, last).machine_id
        found = runs.runs_of(session, machine, last)
    assert [run[0].started_at.day for run in found] == days
