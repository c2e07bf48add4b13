"""The report: comparisons, and the content of the page and of the JSON."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import Result
from tests.fakes.outboxes import put
from tests.fakes.results import make_cell, make_failure, make_result
from tests.fakes.runs import a_run, an_unsteady_run
from typer.testing import CliRunner

from bench_agent.base.home import Home
from bench_agent.base.messages import Timing
from bench_agent.cli.main import app
from bench_agent.output.report import page
from bench_agent.output.report.charts import charts_of
from bench_agent.output.report.figures import MARK_WORDS, MEDIAN_WORDS, Report, report_of
from bench_agent.output.report.neighbours import NOBODY
from bench_agent.output.report.remarks import doubts_of
from bench_agent.plan.plan import Plan, PlannedCell
from bench_agent.plan.presets import PRESETS
from bench_agent.remote.outbox import Outbox
from bench_agent.remote.rank import MachineRank
from bench_agent.run import journal
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload import result as wire
from bench_protocol.payload.result import Warn


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(a_run())


def test_each_comparison_holds_everything_else_equal(report: Report) -> None:
    charts = charts_of(report)
    assert [group.title for group in charts.devices] == [
        "mnist-cnn, batch 64",
        "fashion-mlp, batch 128",
    ]
    (mnist, _) = charts.devices
    assert [bar.label for bar in mnist.bars] == ["cpu: tensorflow tuned", "metal: mlx tuned"]
    assert mnist.bars[1].note.startswith("3.46 times as fast as tensorflow on cpu (3.")
    assert {len(group.bars) for group in charts.recipes} == {2}
    assert len(charts.recipes) == 6
    slowed, other = charts.recipes[:2]
    assert slowed.bars[1].note == ""  # no ratio over a figure that other programs slowed
    assert other.bars[1].note.startswith("2.00 times as fast as naive (1.")
    assert [group.title for group in charts.frameworks] == [
        "mnist-cnn, batch 64, on Apple M2 Max (30-core GPU)",
        "fashion-mlp, batch 128, on Apple M2 Max (30-core GPU)",
    ]
    fastest = charts.fastest[0].bars
    assert [bar.label for bar in fastest][::5] == ["mlx metal, tuned", "tensorflow cpu, naive"]
    assert [bar.share for bar in fastest] == sorted((bar.share for bar in fastest), reverse=True)
    assert all(bar.high is not None and bar.high <= 1 for bar in fastest)


def test_a_report_of_one_run_gives_no_verdict(report: Report) -> None:
    """Its repeats are of one run, so they do not show how runs differ."""
    notes = [bar.note for group in charts_of(report).recipes[1:] for bar in group.bars[1:]]
    assert all("within this run" in note for note in notes)
    assert not any("clear" in note or "CI" in note for note in notes)
    assert "Runs differ by more" in page.html(report)
    for cell in report.cells:
        assert cell.low is not None
        assert cell.high is not None
        assert cell.low * cell.high == pytest.approx(cell.samples_per_second**2)


def test_one_process_a_cell_gives_ratios_without_intervals() -> None:
    bar = charts_of(report_of(a_run(repeats=1))).recipes[0].bars[1]
    assert (bar.note, bar.low, bar.high) == ("", None, None)


def test_a_run_of_one_cell_shows_it_and_compares_nothing() -> None:
    report = report_of([make_result()])
    charts = charts_of(report)
    assert [[bar.share for bar in group.bars] for group in charts.fastest] == [[1.0]]
    assert charts.devices == charts.recipes == charts.frameworks == ()
    assert len(charts.traces) == 1
    assert ": 1 of 1 set-up measured in 1 fresh process on generated data," in page.html(report)
    assert "Naive, pipeline" not in page.html(report)


def test_an_unsteady_cell_is_marked_wherever_its_figure_stands() -> None:
    unsteady = report_of(an_unsteady_run())
    (group,) = charts_of(unsteady).recipes
    assert [bar.value.endswith(" ?") for bar in group.bars] == [True, False]
    assert group.bars[1].note == "2.00 times as fast as naive ?"
    assert [row[4].endswith(" ?") for row in page.rows_of(unsteady)] == [True, False]
    assert MARK_WORDS in page.html(unsteady)
    assert MARK_WORDS not in page.html(report_of([make_result()]))


def test_a_disturbed_process_is_in_no_figure_while_there_are_others() -> None:
    """As on the server: the same three results have the same figure there."""
    load = Warn(code="other_load", figures={"busy_cores": 1.0, "cores": 2.0})
    slowed = make_result(repeat=1, step_ns=2_000_000, warnings=(load,))
    made = report_of([slowed, *[make_result(repeat=number) for number in (2, 3)]])
    (cell,) = made.cells
    assert cell.rates == (64_000.0, 64_000.0)
    assert (cell.in_doubt, cell.slowed, cell.left_out) == (False, False, 1)
    assert doubts_of(made)[0] == (
        "1 disturbed measurement is in no figure: undisturbed ones of the same set-up are"
    )
    (alone,) = report_of([slowed]).cells
    assert (alone.rates, alone.slowed, alone.left_out) == ((32_000.0,), True, 0)


@pytest.mark.parametrize(("last_step_ns", "in_doubt"), [(1_000_000, False), (3_000_000, True)])
def test_a_cell_is_marked_whose_processes_differ(last_step_ns: int, in_doubt: bool) -> None:
    results = [make_result(repeat=number) for number in (1, 2, 3)]
    (cell,) = report_of([*results, make_result(repeat=4, step_ns=last_step_ns)]).cells
    assert cell.within_run_spread < 0.1
    assert cell.in_doubt == in_doubt


def test_a_wide_interval_does_not_make_bars_short() -> None:
    wide = [make_result(repeat=n, step_ns=1_000_000 * n) for n in (1, 2, 9)]
    ((bar,),) = (group.bars for group in charts_of(report_of(wide)).fastest)
    assert (bar.share, bar.high) == (pytest.approx(0.8), 1.0)


def with_settings(workload: str, settings: dict[str, str]) -> wire.Result:
    result = make_result(cell=make_cell(workload, recipe="tuned"))
    assert result.measurement is not None
    measured = result.measurement.model_copy(update={"recipe_settings": settings})
    return result.model_copy(update={"outcome": wire.Measured(measurement=measured)})


def test_settings_of_a_recipe_are_told_once_and_by_workload_where_they_differ(
    report: Report,
) -> None:
    same = page.settings_of(report)
    assert ("mlx metal tuned", "steps_per_call 1") in same
    assert len(same) == 6
    two = [
        with_settings(name, {"subnormals": word, "chains": "2"})
        for name, word in (("mnist-cnn", "kept"), ("fashion-mlp", "flushed"))
    ]
    expected = [
        ("tensorflow cpu tuned (mnist-cnn)", "chains 2, subnormals kept"),
        ("tensorflow cpu tuned (fashion-mlp)", "chains 2, subnormals flushed"),
    ]
    assert page.settings_of(report_of(two)) == expected
    assert f"<dt>{expected[1][0]}</dt><dd>{expected[1][1]}</dd>" in page.html(report_of(two))
    document = json.loads(page.as_json(report_of(two)))
    assert document["results"][0]["recipe_settings"] == {"subnormals": "kept", "chains": "2"}


def test_a_run_of_failures_only_is_reported_too() -> None:
    report = report_of([make_failure("out_of_memory", "build")])
    assert "out of memory while building the model" in page.html(report)
    assert json.loads(page.as_json(report))["cells"] == []


class Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_in_itself_and_has_the_figures(report: Report) -> None:
    text, outline = page.html(report), Outline()
    outline.feed(text)
    outline.close()
    assert (outline.open, outline.loads) == ([], [])
    for absent in ("<script", "url(", "<i>"):
        assert absent not in text
    for words in (
        "Apple M2 Max &lt;i&gt;",
        "other programs kept 2.1 of 12 cores busy",
        ", preset smoke.",
        MEDIAN_WORDS,
        "2.00 times as fast as naive (1.",
        "<td>71,111 ?</td>",
        "<td>fashion-lstm</td><td>128</td><td>tensorflow cpu</td><td>naive</td><td>wrong",
    ):
        assert words in text
    assert MEDIAN_WORDS not in page.html(report_of([make_result()]))


def test_the_json_has_the_figures_of_every_cell_and_result(report: Report) -> None:
    document = json.loads(page.as_json(report))
    results = document["results"]
    assert (len(results), len(document["cells"])) == (len(report.results), 24) == (73, 24)
    cell = document["cells"][0]
    rates = [result["samples_per_second"] for result in results[:3]]
    assert cell["rates"] == rates
    assert cell["samples_per_second"] == sorted(rates)[1]
    low, high = cell["samples_per_second_low"], cell["samples_per_second_high"]
    assert low < cell["samples_per_second"] < high
    first, last = results[0], results[-1]
    assert first["warnings"][0]["words"] == "other programs kept 2.1 of 12 cores busy"
    for name in ("spread", "blocks", "stop_reason"):
        assert first[name], name
    assert (last["status"], last["samples_per_second"], last["spread"]) == ("failed", None, None)
    assert last["failure"].startswith("wrong result")


def test_the_last_run_is_that_of_the_newest_envelope_in_any_state(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    assert outbox.last_run() == []
    put(outbox, make_result(run_id="a" * 32))
    put(outbox, make_result(run_id="b" * 32))
    outbox.move(put(outbox, make_result(run_id="b" * 32, repeat=2)), "sent", {})
    assert [entry.result().repeat for entry in outbox.last_run()] == [1, 2]
    assert {entry.result().run_id for entry in outbox.last_run()} == {"b" * 32}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["report", *arguments])


def test_the_command_writes_a_page_to_a_file_and_json_to_the_terminal(
    command: Callable[..., Result], tmp_path: Path
) -> None:
    outbox = Outbox(tmp_path / "home" / "outbox")
    for result in a_run(repeats=1):
        put(outbox, result)
    assert command().exit_code == 0
    text = (tmp_path / "trainmark-report.html").read_text()
    assert text.startswith("<!doctype html>")
    assert command("-o", "-").stdout == text
    document = json.loads(command("--json").stdout)
    assert document["run_id"] == a_run()[0].run_id
    assert command("--json", "-o", "shared.json").exit_code == 0
    assert json.loads((tmp_path / "shared.json").read_text()) == document


def test_the_report_of_a_run_that_did_not_end_says_so(
    command: Callable[..., Result], tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    (result, *_) = a_run(repeats=1)
    put(Outbox(home.outbox), result)
    said = "This run is not complete: it has 1 of 4 measurements."
    assert said not in command("-o", "-").stdout
    planned = PlannedCell(
        cell=result.cell,
        workload=workload_named(result.cell.workload),
        estimate_seconds=1,
        timing=Timing(budget_seconds=1),
    )
    plan = Plan(PRESETS["smoke"], (planned, planned), (), 2)
    journal.begin(home, result.run_id, "0" * 64, plan)
    shown = command("-o", "-")
    assert said in shown.stdout
    assert said in " ".join(shown.stderr.split())
    assert said in json.loads(command("--json").stdout)["incomplete"]
    journal.begin(home, "f" * 32, "0" * 64, plan)  # another run
    assert said not in command("-o", "-").stdout


def test_a_report_without_ranks_says_why(
    command: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = Outbox(tmp_path / "home" / "outbox")
    put(outbox, a_run(repeats=1)[0])
    unsent = command("--server", "http://127.0.0.1:1")
    assert unsent.exit_code == 0
    assert "fix: bench-agent submit --server http://127.0.0.1:1" in unsent.stderr
    for entry in outbox.pending():
        outbox.move(entry, "sent", {"id": "0f1e2d3c4b5a6978"})
    sent = command("--server", "http://127.0.0.1:1")
    assert "http://127.0.0.1:1 does not answer" in " ".join(sent.stderr.split())
    assert "ranks no" not in sent.stderr
    assert "the report has published figures instead" in sent.stderr
    monkeypatch.setattr("bench_agent.cli.report.around_published", lambda made: NOBODY)
    without = command("--server", "http://127.0.0.1:1")
    assert "the report shows this run alone instead" in without.stderr
    alone = MachineRank("http://127.0.0.1:1/machines/0f1e", "1st of 1 on mnist-cnn")
    monkeypatch.setattr("bench_agent.cli.report.machine_rank", lambda *asked: alone)
    monkeypatch.setattr("bench_agent.cli.report.next_to", lambda client, machine, workloads: [])
    ranked = command("--server", "http://127.0.0.1:1")
    assert "ranks no other hardware next to this machine's: the report" in ranked.stderr
    assert (tmp_path / "trainmark-report.html").exists()


def test_the_command_says_how_to_make_a_run_to_report(command: Callable[..., Result]) -> None:
    answer = command()
    assert answer.exit_code == 2
    assert "no run to report: bench-agent run --preset smoke makes one" in answer.stderr


def test_the_heading_states_the_finding(report: Report) -> None:
    def heading_of(made: Report) -> str:
        return page.html(made).partition("<h1>")[2].partition("</h1>")[0]

    heading = heading_of(report_of([make_result()]))
    assert '<span class="name">mnist-cnn</span>' in heading  # no break at its hyphen
    heading = " ".join(re.sub("<[^>]*>", "", heading_of(report)).split())
    assert heading == "MLX on Metal, tuned, is fastest on 2 of 2 workloads here"
    lead = page.html(report).partition('<p class="lead">')[2]
    assert lead.startswith("Apple M2 Max (30-core GPU)")
    assert "Tuned is 2.00 times as fast as naive" in lead
