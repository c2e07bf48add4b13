"""Every board of the invented fleet is in the order of what its column says."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from sqlmodel import Session
from tests.fakes import fleet

from bench_server.answers import leaderboard
from bench_server.answers.board_filters import BoardFilters
from bench_server.answers.orders import RANK_BY
from bench_server.answers.types.leaderboard import Board, BoardRow
from bench_server.db.store import Store
from bench_server.ranking.figures import Figure
from bench_server.ranking.owners import BACKINGS

# The groups and filters of a board that a reader can choose. The default group is None.
GROUPS = (None, "setup", "machine")
CHOICES: tuple[dict[str, Any], ...] = (
    *({}, {"batch_size": "any", "precision": "any"}, {"backing": "confirmed"}, {"recipe": "tuned"}),
    *(
        {"data": "real"},
        {"trust_level": 2},
        {"owner": "Ada"},
        {"q": "apple"},
    ),
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    store = Store(fleet.make(tmp_path_factory.mktemp("fleet")))
    with store.reading() as opened:
        yield opened
    store.close()


def boards(session: Session, **filters: Any) -> dict[str, Board]:
    """Every board with rows, by workload."""
    asked = BoardFilters.model_validate({**filters, "limit": 500})
    found = leaderboard.leaderboard(session, asked).boards
    return {board.workload.name: board for board in found if board.rows}


def speeds(rows: Sequence[BoardRow]) -> list[float]:
    return [row.samples_per_second for row in rows]


def test_every_board_is_monotone(session: Session) -> None:
    """As it is, and in both directions of the sort; and ranks rise along the rows that have one."""
    for group, choice in product(GROUPS, CHOICES):
        asked = {"group": group, **choice}
        as_it_is = boards(session, **asked)
        assert choice or set(as_it_is) == set(fleet.WORKLOADS)
        for workload, board in as_it_is.items():
            fastest_first = sorted(speeds(board.rows), reverse=True)
            assert speeds(board.rows) == fastest_first, (workload, asked)
            ranks = [row.rank for row in board.rows if row.rank]
            assert ranks == sorted(ranks), (workload, asked)
            if group != "machine" and not {"owner", "q"} & choice.keys():
                assert ranks == [*range(1, len(ranks) + 1)], (workload, asked)
        for sign in ("", "-"):
            for workload, board in boards(
                session, **asked, sort=f"{sign}samples_per_second"
            ).items():
                ordered = sorted(speeds(board.rows), reverse=bool(sign))
                assert speeds(board.rows) == ordered, (workload, asked, sign)
                assert len(board.rows) == len(as_it_is[workload].rows)


def processors(session: Session) -> dict[str, set[tuple[str, str]]]:
    """By workload the slugs of a processor and a GPU of one machine."""
    found: dict[str, set[tuple[str, str]]] = {}
    for workload, board in boards(session, group="machine").items():
        devices: defaultdict[str | None, dict[str, str]] = defaultdict(dict)
        for row in board.rows:
            devices[row.machine_id]["cpu" if row.device == "cpu" else "gpu"] = row.hardware_slug
        found[workload] = {(one["cpu"], one["gpu"]) for one in devices.values() if len(one) == 2}
    return found


def misplaced(session: Session, **filters: Any) -> tuple[list[str], int]:
    """Processors above the GPU of their own machine, of which the figure is larger; and how many
    pairs there are whose GPU is faster."""
    pairs = processors(session)
    wrong, faster = [], 0
    for workload, board in boards(session, **filters).items():
        best: dict[str, tuple[float, int]] = {}
        for place, row in enumerate(board.rows):
            best.setdefault(row.hardware_slug, (row.samples_per_second, place))
        for cpu, gpu in pairs[workload]:
            if cpu in best and gpu in best and best[gpu][0] > best[cpu][0]:
                faster += 1
                if best[gpu][1] > best[cpu][1]:
                    wrong.append(f"{workload}: {cpu} above {gpu}")
    return wrong, faster


def test_no_processor_is_above_the_gpu_of_its_machine(session: Session) -> None:
    for group, sort in product((None, "setup"), (None, "-samples_per_second")):
        wrong, faster = misplaced(session, group=group, sort=sort)
        assert wrong == []
        assert faster >= 4


def test_these_tests_see_evidence_before_speed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order that there once was puts a processor above its GPU, and a board out of order."""

    def by_evidence(figure: Figure) -> Any:
        known = figure.backing is not None
        return (BACKINGS.index(figure.backing) if known else len(BACKINGS)), figure.ns_per_sample

    monkeypatch.setitem(RANK_BY, "throughput", by_evidence)
    assert misplaced(session)[0]
    rows = boards(session)["mnist-cnn"].rows
    assert speeds(rows) != sorted(speeds(rows), reverse=True)
