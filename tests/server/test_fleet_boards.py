"""Every board of the invented fleet is in the order of what its column says."""

import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session
from tests.fakes import fleet, results
from tests.fakes.fleet import filling, measured
from tests.fakes.fleet.filling import START
from tests.fakes.fleet.hardware import BESIDE, CPUS, CUDA, METAL, Kind, environment_of, machine_of

from bench_protocol.catalogue.matrix import Cell, Device
from bench_server.answers import criteria, leaderboard
from bench_server.answers.board_filters import BoardFilters
from bench_server.answers.orders import RANK_BY
from bench_server.answers.types.leaderboard import Board, BoardRow
from bench_server.db.store import Store
from bench_server.ingest import columns, key_events
from bench_server.log.server_keys import Authority, load_authority
from bench_server.ranking.figures import Figure
from bench_server.ranking.owners import BACKINGS
from bench_server.settings import Settings

# The groups and filters of a board that a reader can choose. The default group is None.
GROUPS = (None, "setup", "machine")
SETUP = ("framework", "recipe", "data", "batch_size")
SPEEDS = (0.6, 1.9)
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
def session(fleet_folder: Path) -> Iterator[Session]:
    store = Store(f"sqlite:///{fleet_folder / 'server.db'}")
    with store.reading() as opened:
        yield opened
    store.close()


def boards(session: Session, **filters: Any) -> dict[str, Board]:
    asked = BoardFilters.model_validate({**filters, "limit": 500})
    found = leaderboard.leaderboard(session, asked).boards
    return {board.workload.name: board for board in found if board.rows}


@pytest.mark.parametrize(
    ("query", "found", "not_found"),
    [
        ("m4", "Apple M4 (10-core GPU)", "NVIDIA A100-SXM4-80GB"),
        ("SXM4", "NVIDIA A100-SXM4-80GB", "Apple M4 (10-core GPU)"),
        ("a100 sxm4", "NVIDIA A100-SXM4-40GB", "NVIDIA H200"),
        ("m4 (10", "Apple M4 (10-core GPU)", "Apple M4 Pro (20-core GPU)"),
        ("apple-m4", "Apple M4 (10-core GPU)", "NVIDIA H200"),
    ],
)
def test_a_search_finds_whole_words(
    session: Session, query: str, found: str, not_found: str
) -> None:
    names = {row.hardware for row in boards(session, q=query)["mnist-cnn"].rows}
    assert found in names
    assert not_found not in names


def test_a_search_for_no_letter_finds_nothing(session: Session) -> None:
    assert not boards(session, q="+")
    assert not criteria.Search("+").names("unknown")


def speeds(rows: Sequence[BoardRow]) -> list[float]:
    return [row.samples_per_second for row in rows]


def test_every_board_is_monotone(session: Session) -> None:
    """As it is, and in both directions of the sort; and ranks rise along the rows that have one."""
    for group, choice in product(GROUPS, CHOICES):
        asked = {"group": group, **choice}
        as_it_is = boards(session, **asked)
        assert choice or set(as_it_is) >= set(fleet.TWO)
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
    found: dict[str, set[tuple[str, str]]] = {}
    for workload, board in boards(session, group="machine").items():
        devices: defaultdict[str | None, dict[str, str]] = defaultdict(dict)
        for row in board.rows:
            devices[row.machine_id]["cpu" if row.device == "cpu" else "gpu"] = row.hardware_slug
        found[workload] = {(one["cpu"], one["gpu"]) for one in devices.values() if len(one) == 2}
    return found


def misplaced(session: Session, **filters: Any) -> tuple[list[str], int]:
    """Processors above their machine's faster GPU; the number of pairs with a faster GPU."""
    pairs = processors(session)
    wrong, faster = [], 0
    for workload, board in boards(session, **filters).items():
        best: dict[str, tuple[float, int]] = {}
        for place, row in enumerate(board.rows):
            best.setdefault(row.hardware_slug, (row.samples_per_second, place))
        for cpu, gpu in pairs.get(workload, ()):
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


# -- forty keys of one network ---------------------------------------------------------------------


def first_places(session: Session) -> dict[tuple[Any, ...], BoardRow]:
    """The first rank of every board; the owner of one is known, or two owners are behind it."""
    return {
        (group, str(choice), workload): row
        for group, choice in product((None, "setup"), CHOICES)
        for workload, board in boards(session, group=group, **choice).items()
        for row in board.rows
        if row.rank == 1
    }


def confirmed(session: Session) -> dict[tuple[Any, ...], float]:
    asked = {"group": "setup", "backing": "confirmed", "batch_size": "any", "precision": "any"}
    return {
        (workload, row.hardware_slug, *(getattr(row, name) for name in SETUP)): (
            row.samples_per_second
        )
        for workload, board in boards(session, **asked).items()
        for row in board.rows
    }


def crowd(store: Store, authority: Authority, rows: Iterable[BoardRow]) -> None:
    """Forty owners of one network send results in these set-ups, by turns slower and faster."""
    cells: defaultdict[str, dict[str, Cell]] = defaultdict(dict)
    for row in rows:
        place = {name: getattr(row, name) for name in SETUP}
        cell = results.make_cell(row.workload, device=Device(kind=row.device), **place)
        cells[row.hardware_slug][cell.digest] = cell
    beside = {
        BESIDE[kind.name, kind.cores]: kind for kind in METAL if (kind.name, kind.cores) in BESIDE
    }
    machines = {kind: kind for kind in (*CUDA, *METAL, *CPUS)} | beside
    kinds = {slug(kind, machine): kind for kind, machine in machines.items()}
    at = START + timedelta(days=200)
    for seed in range(100, 140):
        key = results.private_key(seed)
        key_events.accept(results.enrollment(key), store, authority, "open", at, area=7)
        for number, (name, of_kind) in enumerate(cells.items(), 1):
            kind = kinds[name]
            machine = machine_of(machines[kind], 1_000 * number + seed)
            run = measured.Session(key, kind, machine, environment_of(kind), at, SPEEDS[seed % 2])
            filling.send(store, authority, run, of_kind.values(), repeats=(1,))


def slug(kind: Kind, machine: Kind) -> str:
    cell = results.make_cell(device=Device(kind=kind.device))  # type: ignore[arg-type]
    result = results.make_result(cell=cell, machine=machine_of(machine, 1))
    return str(columns.of_result(result)["hardware_slug"])


def test_forty_keys_of_one_network_change_no_first_place_and_no_confirmed_figure(
    fleet_folder: Path, tmp_path: Path, session: Session
) -> None:
    firsts, figures = first_places(session), confirmed(session)
    assert len(firsts) >= 20
    assert len(figures) > 20
    shutil.copy(fleet_folder / "server.db", tmp_path)
    authority = load_authority(Settings().origin, fleet_folder / "server-keys")
    store = Store(f"sqlite:///{tmp_path / 'server.db'}")
    crowd(store, authority, firsts.values())
    with store.reading() as after:
        now = first_places(after)
        assert {row.new_owners for row in now.values()} >= {40}
        assert {name: row.result_id for name, row in now.items()} == {
            name: row.result_id for name, row in firsts.items()
        }
        assert confirmed(after) == figures
    store.close()
