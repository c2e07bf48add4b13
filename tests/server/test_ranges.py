"""Ranges of figures and speed-ups: what they contain, and how often they contain the truth."""

import itertools
import math
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from tests.fakes.medians import figures

from bench_protocol.statistics.comparison import LogSample, figure_interval
from bench_server.ranking import ranges
from bench_server.ranking.compare import compare, compare_on_machines, verdict_bounds
from bench_server.ranking.figures import Evidence, Figure, Setup, Subject
from bench_server.ranking.medians import combined
from bench_server.ranking.spread import Spread

AT = datetime(2026, 11, 21, tzinfo=UTC)
LONG = Setup("tensorflow", "cpu", "naive", 64, "float32", "real", "long")
SHORT = LONG._replace(timing="short")
IDS = itertools.count()
SEEDS = 1_500
ALLOWANCE = 1.96 * 0.05


def repeat(
    ns: float, machine: str = "m1", run: str = "r1", owner: str = "", setup: Setup = LONG
) -> Figure:
    identity = f"{next(IDS):016x}"
    subject = Subject("A", "a", "w", "d", setup, owner or machine, machine, run, "e")
    return Figure(
        identity, subject, ns, ns, ns, LogSample.of([ns]), 3, AT, Evidence(identity),
        spread=Spread(0.01),
    )  # fmt: skip


def hardware(repeats: Sequence[Figure]) -> Figure:
    (figure,) = figures(repeats)
    return figure


def machine(repeats: Sequence[Figure]) -> Figure:
    (figure,) = combined(combined(repeats, "run"), "machine")
    return figure


def around(figure: Figure, own: bool = False) -> ranges.Bounds:
    return ranges.of_figure(figure, own).around(1.0)


def test_three_owners_have_their_interval_and_fewer_an_allowance() -> None:
    three = hardware([repeat(100 + n, f"m{n}") for n in range(3)])
    low, high = figure_interval(three.ns_per_sample, three.values) or (0.0, 0.0)
    time = three.ns_per_sample
    assert around(three)[:2] == pytest.approx((time / high, time / low))
    assert around(three).of == "owners"
    machines = hardware([repeat(100 + n, f"m{n}", owner="o") for n in range(3)])
    assert around(machines).of == "machines"
    # Two owners of equal speed: the allowance over the root of two.
    two = hardware([repeat(100, f"m{n}") for n in range(2)])
    half = math.exp(ALLOWANCE / math.sqrt(2))
    assert around(two)[:2] == pytest.approx((1 / half, half), rel=1e-3)
    assert around(two).of == "repeats"


def test_one_machine_says_little_about_its_model_however_often_it_ran() -> None:
    repeats = [repeat(ns) for ns in (98, 100, 103)]
    faster, slower = (math.hypot(ALLOWANCE, math.log(ratio)) for ratio in (100 / 98, 1.03))
    expected = math.exp(-slower), math.exp(faster)
    assert around(hardware(repeats))[:2] == pytest.approx(expected, rel=1e-4)
    assert around(hardware(repeats)).of == "repeats"
    many = [repeat(100 + n % 3, run=f"r{n}") for n in range(30)]
    assert around(hardware(many)).of == "repeats"
    assert around(hardware(many)).low == pytest.approx(math.exp(-ALLOWANCE), rel=1e-3)
    # The machine's own figure has no allowance for others.
    assert around(machine(repeats))[:2] == pytest.approx((100 / 103, 100 / 98))
    assert around(machine(repeats)).of == "own_repeats"
    assert around(machine(many)).of == around(hardware(many), own=True).of == "runs"
    assert around(machine(many)).low > 0.98


def test_of_one_repeat_the_blocks_differ() -> None:
    bounds = around(machine([repeat(100)]))
    assert bounds[:2] == pytest.approx((math.exp(-0.01), math.exp(0.01)))
    assert bounds.of == "own_repeats"


def test_a_speed_up_has_the_range_of_both_sides() -> None:
    one, other = hardware([repeat(100)]), hardware([repeat(200, "m2")])
    found = compare(one, other)
    half = math.exp(math.sqrt(2) * math.hypot(ALLOWANCE, 0.01))
    bounds = (found.speed_up_low, found.speed_up_high)
    assert bounds == pytest.approx((2 / half, 2 * half), rel=1e-4)
    assert (found.verdict_kind, found.speed_up_range_of) == ("too_few_runs", "repeats")
    # The side with an interval is narrower.
    against_five = compare(one, hardware([repeat(200 + n, f"m{n}") for n in range(5)]))
    assert against_five.speed_up_low is not None
    assert against_five.speed_up_low / against_five.speed_up > 1 / half
    assert (against_five.speed_up_range_of, against_five.n_other) == ("repeats", 5)


def test_one_machine_against_itself_needs_no_allowance() -> None:
    fast, slow = ([repeat(ns + n) for n in range(2)] for ns in (100, 200))
    here = {f.evidence.result_id: "m1" for f in (hardware(fast), hardware(slow))}
    found = compare(hardware(fast), hardware(slow), here)
    assert found.speed_up_range_of == "own_repeats"
    assert found.speed_up_low == pytest.approx(found.speed_up, rel=0.02)
    other = hardware(slow)
    gpu = other._replace(subject=other.subject._replace(hardware_slug="gpu"))
    ids = here | {gpu.evidence.result_id: "m1"}
    assert compare(hardware(fast), gpu, ids).speed_up_range_of == "repeats"
    runs = compare(*(machine([repeat(ns + n, run=f"r{n}") for n in range(4)]) for ns in (100, 200)))
    assert (runs.speed_up_range_of, runs.verdict_kind) == ("runs", "faster")


def test_the_verdict_of_two_machines_is_no_range_of_their_models() -> None:
    """The verdict is about these two machines; the range is about the hardware."""
    a, b = (
        [repeat(ns + n / 10, m, f"r{n}") for n in range(4)] for ns, m in ((100, "a"), (104, "b"))
    )
    found = compare(hardware(a), hardware(b), {})
    assert found.verdict == "1.040 times as fast with one machine a side (95 % CI 1.037 to 1.043)"
    assert found.speed_up_range_of == "repeats"
    assert found.speed_up_low is not None
    assert found.speed_up_low < 1 / 1.05


def test_unlike_timings_compare_and_allow_for_the_boost() -> None:
    def side(ns: float, setup: Setup, *names: str) -> Figure:
        return hardware([repeat(ns + n / 10, name, setup=setup) for n, name in enumerate(names)])

    names = ("m1", "m2", "m3", "m4")
    long, short = side(100, LONG, *names), side(90, SHORT, *names)
    like, unlike = compare(side(90, LONG, *names), long), compare(short, long)
    assert (like.mixed_timing, unlike.mixed_timing) == (False, True)
    assert like.speed_up_low is not None
    assert unlike.speed_up_low == pytest.approx(like.speed_up_low / 1.16)
    assert unlike.speed_up_high == like.speed_up_high
    back = compare(long, short)
    assert back.speed_up_high == pytest.approx(1.16 / like.speed_up_low)
    # 1.11 times as fast may be the boost alone; twice as fast is not.
    assert (like.verdict_kind, unlike.verdict_kind, unlike.p_value) == (
        "faster",
        "no_difference",
        1,
    )
    assert back.verdict_kind == "no_difference"
    assert compare(side(50, SHORT, *names), long).verdict_kind == "faster"
    assert verdict_bounds(short, long) == pytest.approx((unlike.speed_up_low, unlike.speed_up_high))
    # Too few for a verdict.
    one = compare(side(90, SHORT, "m1"), side(100, LONG, "m2"))
    plain = compare(side(90, LONG, "m1"), side(100, LONG, "m2"))
    assert (one.verdict_kind, one.speed_up_high) == ("too_few_runs", plain.speed_up_high)
    assert plain.speed_up_low is not None
    assert one.speed_up_low == pytest.approx(plain.speed_up_low / 1.16)


def test_unlike_data_are_marked() -> None:
    generated = repeat(100, setup=LONG._replace(data="generated"))
    found = compare(hardware([generated]), hardware([repeat(100, "m2")]))
    assert (found.mixed_data, found.mixed_timing) == (True, False)


def test_an_update_of_few_machines_has_the_range_of_their_repeats() -> None:
    def on(speed_up: float, low: float, high: float) -> tuple[float, float, ranges.Bounds]:
        return 100, 100 * speed_up, ranges.Bounds(low, high, "own_repeats")

    found = compare_on_machines([on(1.1, 1.08, 1.12), on(1.05, 1.04, 1.06)])
    bounds = (found.speed_up_low, found.speed_up_high, found.speed_up_range_of)
    assert bounds == (1.04, 1.12, "own_repeats")
    three = compare_on_machines([on(ratio, 1, 2) for ratio in (1.1, 1.09, 1.11)])
    assert (three.speed_up_range_of, three.verdict_kind) == ("machines", "faster")


def share_within(owners: int, deviation: float, between_repeats: float = 0.01) -> float:
    """How often the range holds the model: an owner has a machine, three log-normal repeats."""
    random = np.random.default_rng(7)
    machines = random.normal(0, deviation, (SEEDS, owners, 1))
    times = 100 * np.exp(machines + random.normal(0, between_repeats, (SEEDS, owners, 3)))
    hits = 0
    for of_model in times.tolist():
        figure = hardware([repeat(ns, f"m{n}") for n, row in enumerate(of_model) for ns in row])
        low, high, _ = around(figure)
        hits += low <= figure.ns_per_sample / 100 <= high
    return hits / SEEDS


@pytest.mark.parametrize(
    ("owners", "shares"), [(1, (0.99, 0.93, 0.80)), (2, (0.99, 0.95, 0.88)), (4, (0.93,) * 3)]
)
def test_the_range_of_a_figure_holds_the_model(owners: int, shares: Sequence[float]) -> None:
    """Machines of a model that differ by 2, 5 and 7 %; the allowance assumes 5 %."""
    for deviation, least in zip((0.02, 0.05, 0.07), shares, strict=True):
        assert share_within(owners, deviation) >= least, deviation
