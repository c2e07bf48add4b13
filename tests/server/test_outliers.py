"""Other owners' times: one by one if they are few, by their quartiles if they are many."""

import math
import random
from datetime import UTC, datetime
from statistics import NormalDist

import numpy as np
import pytest
from sqlalchemy import insert

from bench_protocol.statistics.comparison import LogSample
from bench_server.db.store import Store
from bench_server.projection import outliers
from bench_server.projection.outliers import Place
from bench_server.ranking.figures import Evidence, Figure, Setup, Subject
from bench_server.ranking.rows import TABLE, aggregate_columns

PLACE = "p" * 32
AT = datetime(2026, 11, 23, tzinfo=UTC)


def keep(store: Store, times: list[float], place: str = PLACE) -> None:
    """Store a hardware's aggregate and those of its owners; other columns do not matter."""
    with store.writing() as session:
        setup = Setup("mlx", "metal", "naive", 64, "float32", "real", "long")
        subject = Subject("H", "h", "mnist-cnn", "d" * 64, setup)
        blank = Figure(
            "", subject, 1.0, 1.0, 1.0, LogSample(1, 0.0, 0.0), 1, AT, Evidence("0" * 16)
        )
        row = aggregate_columns("hardware", blank)
        hardware = row | {"id": place, "owners": len(times)}
        of_owner = row | {"level": "owner", "parent_id": place}
        owners = [
            of_owner | {"id": owner_id(number, place), "ns_per_sample": time}
            for number, time in enumerate(times)
        ]
        session.connection().execute(insert(TABLE), [hardware, *owners])


def statistics(store: Store, sender: str = "new") -> outliers.OtherOwners:
    place, nobody = Place(PLACE, sender), Place("nobody", sender)
    with store.reading() as session:
        found = outliers.others(session.connection(), [place, nobody])
    assert found[nobody] == outliers.NONE
    return found[place]


def owner_id(number: int, place: str = PLACE) -> str:
    return f"{place[-8:]}o{number:023d}"


def quartiles_of(times: list[float]) -> outliers.OtherOwners:
    ordered = sorted(times)
    return outliers.of_quartiles(
        len(times), [ordered[len(times) * quarter // 4] for quarter in (1, 2, 3)]
    )


@pytest.mark.parametrize("count", [1, 5, outliers.FEW, outliers.FEW + 1, outliers.FEW + 2, 90])
def test_ones_own_is_never_among_the_others(store: Store, count: int) -> None:
    """The statistics of the others are the same with and without the owner's aggregate."""
    times = [100.0 + number for number in range(count)]
    random.Random(1).shuffle(times)
    keep(store, times)
    for number in (0, count // 3, count - 1):
        rest = times[:number] + times[number + 1 :]
        wanted = quartiles_of(rest) if len(rest) > outliers.FEW else outliers.of_times(rest)
        assert statistics(store, owner_id(number)) == pytest.approx(wanted)
    everyone = quartiles_of(times) if count > outliers.FEW else outliers.of_times(times)
    assert statistics(store) == pytest.approx(everyone)


@pytest.mark.parametrize("wild", [False, True])
def test_both_ways_estimate_the_same_deviation(store: Store, wild: bool) -> None:
    """For 400 owners with normally distributed logarithms, with and without 5 % outliers."""
    normal = NormalDist(math.log(1000), 0.1)
    times = [math.exp(normal.inv_cdf((number + 0.5) / 400)) for number in range(400)]
    if wild:
        times[::20] = [1e9] * 20
    keep(store, times)
    quick = statistics(store)
    with pytest.MonkeyPatch.context() as patch:  # as few would be: by the deviations
        patch.setattr(outliers, "FEW", len(times))
        exact = outliers.of_times(times)
    assert quick.middle == pytest.approx(exact.middle, abs=0.02)
    assert quick.deviation == pytest.approx(0.1, rel=0.25)
    assert exact.deviation == pytest.approx(0.1, rel=0.25)


@pytest.mark.parametrize("owners", range(outliers.OWNERS_FOR_OUTLIERS, 13))
def test_few_owners_make_few_false_outliers(owners: int) -> None:
    """Times differ by 10 %: the plain median absolute deviation of five finds 6.8 % outliers."""
    random_times = np.random.default_rng(owners)
    logs = np.log(100) + 0.1 * random_times.standard_normal((20_000, owners + 1))
    false = 0
    for new, *others in logs.tolist():
        statistics = outliers.of_times([math.exp(log) for log in others])
        away = (new - statistics.middle) / max(statistics.deviation, outliers.LEAST_DEVIATION)
        false += abs(away) > outliers.OUTLIER_DEVIATIONS
    assert false / len(logs) < 0.01
