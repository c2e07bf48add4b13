"""Verdicts of an answer: corrected together, and limited to the machines behind them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median_high

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.statistics.comparison import LogSample
from bench_server.answers import verdicts
from bench_server.ranking.compare import compare, compare_all, verdict_bounds
from bench_server.ranking.figures import UNITS, Evidence, Figure, Setup, Subject, Unit

pytestmark = pytest.mark.sqlite
AT = datetime(2026, 11, 21, tzinfo=UTC)
PAGES = 400


def figure(times: Sequence[float], name: str, unit: Unit = UNITS[0]) -> Figure:
    setup = Setup("tensorflow", "cpu", "naive", 64, "float32", "real", "long")
    subject = Subject(name.upper(), name, "w", "d", setup)
    middle = median_high(times)
    return Figure(
        name, subject, middle, min(times), max(times), LogSample.of(times), 3, AT, Evidence(name),
        unit, repeats=len(times), runs=len(times),
    )  # fmt: skip


SLOW, FAST = [112, 113, 111.5, 112.4], [100, 101, 99.5, 100.2]


@pytest.mark.parametrize(
    ("machines", "words"),
    [
        ({"a": "m1", "b": "m2"}, "1.12 times as fast on these two machines (95 % CI 1.11 to 1.14)"),
        ({"a": "m1", "b": "m1"}, "1.12 times as fast on this machine (95 % CI 1.11 to 1.14)"),
        ({"a": "m1"}, "1.12 times as fast with one machine a side (95 % CI 1.11 to 1.14)"),
    ],
)
def test_one_machine_a_side_is_no_verdict_about_hardware(
    machines: dict[str, str], words: str
) -> None:
    found = compare(figure(FAST, "a"), figure(SLOW, "b"), machines)
    assert (found.scope, found.verdict) == ("machines", words)
    several = compare(figure(FAST, "a", "machines"), figure(SLOW, "b", "machines"), machines)
    assert (several.scope, several.verdict) == (
        "hardware",
        "1.12 times as fast (95 % CI 1.11 to 1.14)",
    )


def test_a_verdict_that_the_correction_takes_away_says_so() -> None:
    base = figure([100, 101, 99], "base")
    near = figure([97.5, 96.5, 98], "near")
    assert compare(near, base).verdict_kind == "faster"
    equal = [figure([100 + n / 100, 101, 99], f"equal{n}") for n in range(10)]
    together = compare_all([(thing, base) for thing in (near, *equal)])
    found = together.of[near, base]
    assert together.count == 11
    assert found.verdict_kind == "no_difference"
    low, _ = verdict_bounds(near, base) or (0, 0)
    assert low > 1
    assert found.p_value is not None
    assert found.adjusted_p_value == pytest.approx(11 * found.p_value)
    assert found.verdict.startswith(
        "no clear difference among 11 comparisons; alone: 1.026 times as fast with one machine"
    )


def test_a_pair_and_its_reverse_are_one_comparison() -> None:
    a, b, few = figure(FAST, "a"), figure(SLOW, "b"), figure([1, 2], "few")
    together = compare_all([(a, b), (b, a), (few, a)])
    assert together.count == 1
    assert [c.verdict_kind for c in together.of.values()] == ["faster", "slower", "too_few_runs"]


def test_a_verdict_over_all_rows_is_about_its_machines() -> None:
    machines = {"a": "m1", "b": "m2", "c": "m3"}
    fast, slow = figure(FAST, "a"), figure(SLOW, "b")
    found = compare_all([(fast, slow), (figure(FAST, "c"), slow)], machines)
    one = verdicts.verdicts_over_rows([(fast, slow)], found)
    assert one["verdict"] == "1.12 times as fast on these two machines (95 % CI 1.11 to 1.14)"
    two = verdicts.verdicts_over_rows(list(found.of), found)
    assert two["verdict"].startswith("1.12 times as fast on these two machines (95 % CI ")
    few = figure([1, 2], "few")
    together = compare_all([(few, slow)])
    missing = verdicts.verdicts_over_rows([(few, slow)], together)
    assert (missing["verdict_kind"], missing["verdict"]) == ("too_few_runs", verdicts.TOO_FEW)
    assert verdicts.verdicts_over_rows([], found) == dict.fromkeys(verdicts.FIELDS)


def test_the_heading_of_several_things_claims_no_more_than_its_verdict(
    http: TestClient, post: Poster
) -> None:
    for n, step_ns in enumerate((1_000_000, 999_000, 1_500_000)):
        machine = results.make_machine(f"Intel Core i{n}", seed=n + 1)
        for run in range(3):
            post.made(machine=machine, run_id=f"{10 * n + run:032x}", step_ns=step_ns + 9_000 * run)
    first, near, slow = (f"intel-core-i{n}" for n in range(3))

    def heading(*ids: str) -> str:
        return http.get("/compare", params={"ids": ",".join(ids)}).text.split("<h1>")[1]

    ahead = "Intel Core i1 is the first of 3, not clearly ahead of Intel Core i0</h1>"
    assert heading(first, near, slow).startswith(ahead)
    assert heading(near, first, slow).startswith(ahead)
    fastest = "Intel Core i0 is the fastest of 3: it trains 1."
    assert heading(slow, first, near).startswith(("Intel Core i1 is the fastest of 3", fastest))


def test_the_heading_of_several_things_with_too_few_runs_is_not_sure(
    http: TestClient, post: Poster
) -> None:
    for n, step_ns in enumerate((1_000_000, 1_200_000, 1_500_000)):
        machine = results.make_machine(f"Intel Core i{n}", seed=n + 1)
        post.made(machine=machine, run_id=f"{n:032x}", step_ns=step_ns)
    page = http.get("/compare", params={"ids": ",".join(f"intel-core-i{n}" for n in range(3))})
    assert page.text.split("<h1>")[1].startswith("Intel Core i0 looks like the fastest of 3</h1>")
