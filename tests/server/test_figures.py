"""Ranking: results computed by hand, and invariants."""

import itertools
import math
import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.medians import figures

from bench_protocol.statistics.comparison import LogSample
from bench_server.ranking.compare import compare, ranked
from bench_server.ranking.figures import Evidence, Figure, Setup, Subject
from bench_server.ranking.medians import combined
from bench_server.ranking.owners import CONFIRMED, ESTABLISHED, OwnerCounts
from bench_server.ranking.spread import Range, Spread

SETUP = Setup("tensorflow", "cpu", "naive", 64, "float32", "real", "long")
AT = datetime(2026, 11, 21, tzinfo=UTC)
COUNTER = itertools.count()


def repeat(
    ns: float,
    owner: str = "o1",
    machine: str = "m1",
    hardware: str = "a",
    setup: Setup = SETUP,
    run: str = "",
    trust_level: int = 2,
    disturbed: bool = False,
) -> Figure:
    identity = f"{next(COUNTER):016x}"
    run = run or identity
    subject = Subject(hardware.upper(), hardware, "w", "d", setup, owner, machine, run, "e")
    return Figure(
        identity, subject, ns, ns, ns, LogSample.of([ns]), trust_level, AT, Evidence(identity),
        spread=Spread(0.01), disturbed=disturbed,
    )  # fmt: skip


def figure_of(
    repeats: Iterable[Figure],
    kinds: Mapping[str, int] | None = None,
    areas: Mapping[str, int] | None = None,
) -> Figure:
    (figure,) = figures(repeats, kinds or {}, areas or {})
    return figure


def test_median_of_owners_of_machines_of_runs_of_repeats() -> None:
    figure = figure_of(
        [
            *(repeat(ns, "o1", "m1", run="r1") for ns in (90, 99, 200)),  # run 99
            repeat(101, "o1", "m1", run="r2"),  # machine 101
            repeat(140, "o1", "m2"),  # owner 140
            repeat(130, "o2", "m3"),
            repeat(400, "o3", "m4"),
        ]
    )
    assert (figure.fastest_ns, figure.ns_per_sample, figure.slowest_ns) == (90, 140, 400)
    assert (figure.repeats, figure.runs, figure.machines, figure.owners.new) == (7, 5, 4, 3)
    assert figure.backing == "several"


@given(st.lists(st.tuples(st.floats(1, 9), *map(st.sampled_from, ("ab", "xy", "12")))).filter(bool))
def test_every_figure_is_the_time_of_its_result(rows: list[tuple[float, str, str, str]]) -> None:
    """At each level, and the spread is never narrower than that of its middle."""
    made = [repeat(ns, o, o + machine, run=o + machine + run) for ns, o, machine, run in rows]
    times = {one.id: one.ns_per_sample for one in made}
    runs = combined(made, "run")
    for figure in (*runs, *combined(runs, "machine"), *figures(made)):
        assert figure.ns_per_sample == times[figure.evidence.result_id]
        assert figure.spread.share >= 0.01


def test_the_spread_is_the_widest_and_says_between_what() -> None:
    for repeats, between, share in (
        ([repeat(100)], "blocks", 0.01),
        ([repeat(100, run="r"), repeat(95, run="r")], "repeats", 0.05),
        ([repeat(100), repeat(70), repeat(98)], "runs", 30 / 98),
        ([repeat(100), repeat(90, machine="m2")], "machines", 0.1),
        ([repeat(100), repeat(60), repeat(99, machine="m2")], "runs", 0.4),
    ):
        spread = figure_of(repeats).spread
        assert (spread.between, spread.share) == (between, pytest.approx(share))


@pytest.mark.parametrize(("even", "expected"), [(7, Range(102, 105)), (6, Range(100, 4000))])
def test_a_few_odd_machines_of_many_are_no_disagreement(even: int, expected: Range) -> None:
    """From eight values on the inner half is their range: the widest of a thousand says nothing."""
    machines = [repeat(100 + n, machine=f"m{n}") for n in range(even)]
    figure = figure_of([*machines, repeat(4000, machine="odd")])
    assert figure.machines_range == expected
    assert figure.spread.unsteady is (even < 7)


def test_disturbed_values_are_left_out_while_there_are_others() -> None:
    disturbed = {"disturbed": True}
    rows = [
        repeat(100, run="r1"),
        repeat(900, run="r1", **disturbed),  # left out of its run
        repeat(800, run="r2", **disturbed),  # its run is left out of the machine
        *(repeat(700, "o1", "m2", **disturbed) for _ in range(2)),  # the machine of the owner
        repeat(600, "o2", "m3", **disturbed),  # the owner of the hardware
    ]
    figure = figure_of(rows)
    assert (figure.ns_per_sample, figure.disturbed, figure.left_out) == (100, False, 5)
    assert (figure.repeats, figure.runs, figure.machines, figure.owners.total) == (1, 1, 1, 2)
    assert (figure.unit, figure.machines_range) == ("runs", None)
    alone = figure_of(rows[1:])
    assert (alone.disturbed, alone.left_out, alone.repeats) == (True, 0, 5)


def test_one_undisturbed_owner_of_three_is_one() -> None:
    """Backing is of the owners that count: else one stranger would set the figure of several."""
    kinds = dict.fromkeys(("o0", "o1", "o2", "o3"), ESTABLISHED)
    disturbed = [repeat(100, f"o{n}", f"m{n}", disturbed=True) for n in range(3)]
    assert figure_of(disturbed, kinds).backing == "several"
    figure = figure_of([*disturbed, repeat(1, "o3", "m3")], kinds)
    assert (figure.ns_per_sample, figure.owners.total, figure.backing) == (1, 4, "one")


def test_confirmed_owners_decide_before_disturbances() -> None:
    confirmed = dict.fromkeys(("c1", "c2"), CONFIRMED)
    rows = [repeat(100, c, c, disturbed=True) for c in sorted(confirmed)]
    rows.append(repeat(10, "stranger", "s"))
    figure = figure_of(rows, confirmed)
    assert (figure.ns_per_sample, figure.disturbed, figure.backing) == (100, True, "confirmed")
    cleaner = figure_of([*rows, repeat(90, "c1", "c1")], confirmed)
    assert (cleaner.ns_per_sample, cleaner.disturbed, cleaner.left_out) == (90, False, 2)
    assert (cleaner.owners, cleaner.backing) == (OwnerCounts(2, 0, 1), "one")


@pytest.mark.parametrize(
    ("counted", "kinds", "words"),
    [
        (1, (1, 0, 100), "1 confirmed, 100 new; only the 1 confirmed counts"),
        (1, (0, 1, 100), "1 established, 100 new; only the 1 established counts"),
        (3, (3, 2, 100), "3 confirmed, 2 established, 100 new; only the 3 confirmed count"),
        (
            3,
            (1, 2, 100),
            "1 confirmed, 2 established, 100 new; only the 3 confirmed and established count",
        ),
    ],
)
def test_a_hundred_new_owners_move_no_median(
    counted: int, kinds: tuple[int, int, int], words: str
) -> None:
    labels = [f"{kind}-{n}" for kind, number in enumerate(kinds) for n in range(number)]
    of_kind = {label: int(label[0]) for label in labels}
    rows = [repeat(100 + of_kind[x], x, x) for x in labels if of_kind[x] < 2]
    fresh = [repeat(10, x, x) for x in labels if of_kind[x] == 2]
    before, after = figure_of(rows, of_kind), figure_of([*rows, *fresh], of_kind)
    assert after == before._replace(owners=OwnerCounts(*kinds))
    assert (after.counted, after.owners.words(counted)) == (counted, words)
    assert after.backing == before.backing
    alone = figure_of(fresh, areas=dict.fromkeys(labels[-99:], 1))
    assert (alone.backing, alone.ns_per_sample) == ("several", 10)
    words = "100 new; 2 count: one of each area, undisturbed ones first"
    assert alone.owners.words(alone.counted) == words


def test_repeats_of_a_run_are_one_value() -> None:
    many = [repeat(50 + n / 10, run="r1") for n in range(20)]
    machine = figure_of([*many, repeat(100, run="r2"), repeat(102, run="r3")])
    assert (machine.ns_per_sample, machine.values.n, machine.unit) == (100, 3, "runs")
    assert compare(machine, machine).n == 3


def test_more_than_half_decide_on_the_trust_level() -> None:
    """One stranger at level 2 does not mark a hardware of owners at level 3, nor lift one."""
    honest = [repeat(100, f"o{n}", f"m{n}", trust_level=3) for n in range(3)]
    low = [repeat(100, "s", f"s{n}", trust_level=2) for n in range(30)]
    assert figure_of([*honest, *low]).trust_level == 3
    assert figure_of([repeat(100, "o1", trust_level=2), *honest[:1]]).trust_level == 2
    machine = [repeat(100, run="r1", trust_level=level) for level in (2, 2, 3)]
    runs = [repeat(100, run=f"r{n}", trust_level=4) for n in (2, 3)]
    assert figure_of([*machine, *runs]).trust_level == 4


def test_each_hardware_stands_once_with_its_fastest_setup() -> None:
    """Generated and real data never share a figure, and published figures have no place."""
    copied = figure_of([repeat(10, hardware="p")])._replace(published=True)
    generated, tuned = SETUP._replace(data="generated"), SETUP._replace(recipe="tuned")
    of_a = [repeat(100), repeat(60, setup=tuned), repeat(50, setup=generated)]
    made = figures([*of_a, repeat(80, hardware="b", machine="m2")])
    published, first, second = ranked([copied, *made], one_each=True)
    assert (published.rank, published.figure) == (None, copied)
    assert (first.rank, first.figure.setup) == (1, generated)
    assert [other.setup for other in first.others] == [tuned, SETUP]
    assert (second.rank, second.figure.hardware_slug) == (2, "b")
    assert [row.rank for row in ranked(made, one_each=False)] == [1, 2, 3, 4]


times = st.floats(1e-3, 1e9)
sides = st.lists(
    st.tuples(times, st.sampled_from("pqr"), st.sampled_from("xyz")), min_size=1, max_size=12
)


@given(sides, st.floats(0.1, 10), st.randoms())
def test_scaling_and_order(
    rows: list[tuple[float, str, str]], c: float, rnd: random.Random
) -> None:
    made = [repeat(ns, owner, owner + machine) for ns, owner, machine in rows]
    figure = figure_of(made)
    scaled = figure_of(r._replace(ns_per_sample=r.ns_per_sample * c) for r in made)
    assert math.isclose(scaled.ns_per_sample, figure.ns_per_sample * c, rel_tol=1e-12)
    rnd.shuffle(made)
    assert figure_of(made) == figure


@given(sides, st.integers(0, 11), times)
def test_one_more_vote_of_an_owner_changes_nothing(
    rows: list[tuple[float, str, str]], which: int, bad: float
) -> None:
    """A further repeat or machine equal to the owner's own figure changes no aggregate. For any
    results of one owner, the hardware's figure is between its values with that owner infinitely
    fast and infinitely slow."""
    made = [repeat(ns, owner, owner + machine) for ns, owner, machine in rows]
    owner = made[which % len(made)].subject.owner
    owner_ns = figure_of(r for r in made if r.subject.owner == owner).ns_per_sample
    more = figure_of([*made, repeat(owner_ns, owner, "another")])
    assert math.isclose(more.ns_per_sample, figure_of(made).ns_per_sample, rel_tol=1e-12)
    assert more.owners == figure_of(made).owners
    others = [r for r in made if r.subject.owner != owner]
    flood = [repeat(bad, owner, f"flood{number}") for number in range(9)]
    low = figure_of([*others, repeat(1e-9, owner)]).ns_per_sample
    high = figure_of([*others, repeat(1e15, owner)]).ns_per_sample
    assert low <= figure_of([*made, *flood]).ns_per_sample <= high


@pytest.mark.parametrize("unit", ["machines", "owners"])
def test_many_values_of_one_do_not_speak_for_others(unit: str) -> None:
    of_machines = unit == "machines"
    few = figure_of(repeat(100 + n / 10, "o1", f"m{n * (not of_machines)}") for n in range(30))
    others = figure_of(repeat(200 + n, "o2" if of_machines else f"p{n}", f"n{n}") for n in range(3))
    found = compare(few, others)
    assert (found.n_of, found.n, found.n_other) == (unit, 1, 3)
    assert found.verdict_kind == "too_few_runs"
