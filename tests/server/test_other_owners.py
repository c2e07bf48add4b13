"""Times of other owners: exact for few owners, from quartiles for many."""

import math
import random
from datetime import UTC, datetime
from statistics import NormalDist

import pytest
from sqlalchemy import insert, select

from bench_server.db.bulk import TOGETHER
from bench_server.db.store import Store
from bench_server.ingest import other_owners
from bench_server.ranking.rows import TABLE

PLACE = "p" * 32


def keep(store: Store, times: list[float], place: str = PLACE) -> None:
    """Store a hardware's aggregate and those of its owners; other columns do not matter."""
    with store.writing() as session:
        numbers = ("middle_ns", "log_mean", "log_m2", "value_log_mean", "value_log_variance")
        row = {
            **{column.name: "" for column in TABLE.c},
            **dict.fromkeys(numbers, 0.0),
            **dict.fromkeys(("fastest_ns", "slowest_ns", "spread"), 1.0),
            **dict.fromkeys(("value_count", "repeats", "machines", "owners", "trust_level"), 1),
            **dict.fromkeys(("accuracy", "joules_per_sample", "energy_scope"), None),
            "batch_size": 64,
            "newest_at": datetime(2026, 11, 23, tzinfo=UTC),
        }
        hardware = row | {
            "id": place, "level": "hardware", "parent_id": None, "ns_per_sample": 1.0,
            "children": len(times),
        }  # fmt: skip
        of_owner = row | {"level": "owner", "parent_id": place, "children": 1}
        owners = [
            of_owner | {"id": f"{place[-8:]}o{number:023d}", "ns_per_sample": time}
            for number, time in enumerate(times)
        ]
        session.connection().execute(insert(TABLE), [hardware, *owners])


def other_owners_of(store: Store, owner: str = "new") -> other_owners.OtherOwners:
    with store.reading() as session:
        return other_owners.others(session.connection(), [(PLACE, owner), ("nobody", owner)])[
            PLACE, owner
        ]


def owner_named(number: int, place: str = PLACE) -> str:
    return f"{place[-8:]}o{number:023d}"


def quartiles_of(times: list[float]) -> other_owners.OtherOwners:
    ordered = sorted(times)
    return other_owners.of_quartiles(
        len(times), [ordered[len(times) * quarter // 4] for quarter in (1, 2, 3)]
    )


@pytest.mark.parametrize(
    "count", [1, 5, other_owners.FEW, other_owners.FEW + 1, other_owners.FEW + 2, 90]
)
def test_ones_own_is_never_among_the_others(store: Store, count: int) -> None:
    """The statistics of the others are the same with and without the owner's aggregate."""
    times = [100.0 + number for number in range(count)]
    random.Random(1).shuffle(times)
    keep(store, times)
    for number in (0, count // 3, count - 1):
        rest = times[:number] + times[number + 1 :]
        wanted = quartiles_of(rest) if len(rest) > other_owners.FEW else other_owners.of_times(rest)
        assert other_owners_of(store, owner_named(number)) == pytest.approx(wanted)
    everyone = quartiles_of(times) if count > other_owners.FEW else other_owners.of_times(times)
    assert other_owners_of(store) == pytest.approx(everyone)


def of_deviations(times: list[float]) -> other_owners.OtherOwners:
    """As few would be: by the median absolute deviation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(other_owners, "FEW", len(times))
        return other_owners.of_times(times)


@pytest.mark.parametrize("wild", [False, True])
def test_both_ways_estimate_the_same_deviation(store: Store, wild: bool) -> None:
    """For 400 owners with normally distributed logarithms, with and without 5 % outliers."""
    normal = NormalDist(math.log(1000), 0.1)
    times = [math.exp(normal.inv_cdf((number + 0.5) / 400)) for number in range(400)]
    if wild:
        times[::20] = [1e9] * 20
    keep(store, times)
    quick, exact = other_owners_of(store), of_deviations(times)
    assert quick.middle == pytest.approx(exact.middle, abs=0.02)
    assert quick.deviation == pytest.approx(0.1, rel=0.25)
    assert exact.deviation == pytest.approx(0.1, rel=0.25)


@pytest.mark.parametrize("count", [1, TOGETHER, 2 * TOGETHER + 1])
def test_many_places_are_told_apart(store: Store, count: int) -> None:
    places = [f"{number:032x}" for number in range(count)]
    for number, place in enumerate(places):
        keep(store, [1000.0 * (number + 1)] * (other_owners.FEW + 1), place)
    with store.reading() as session:
        pairs = [(place, "new") for place in (*places, "nobody")]
        owners = other_owners.others(session.connection(), pairs)
    middles = [math.exp(owners[place, "new"].middle) for place in places]
    assert middles == pytest.approx([1000.0 * (number + 1) for number in range(count)])


def test_nobody_else_is_no_peer(store: Store) -> None:
    with store.reading() as session:
        assert not session.connection().execute(select(TABLE)).all()
        nobody = other_owners.others(session.connection(), [("nobody", "own")])
    assert nobody == {("nobody", "own"): other_owners.NONE}
