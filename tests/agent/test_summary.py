"""The end of a run in words."""

import html
import io
from pathlib import Path
from typing import get_args

import pytest
from rich.console import Console
from tests.fakes.outboxes import summary_of
from tests.fakes.results import make_cell, make_failure, make_result
from tests.fakes.runs import a_run, an_unsteady_run

from bench_agent.base.home import Home
from bench_agent.output.documents import summary_document
from bench_agent.output.report import page
from bench_agent.output.report.charts import charts_of
from bench_agent.output.report.figures import report_of
from bench_agent.output.report.remarks import (
    FIXES,
    accuracy_lines,
    doubts_of,
    headline,
    tuned_words,
)
from bench_agent.output.summary import show_end, show_figures, what_is_where
from bench_agent.remote.rank import MachineRank
from bench_agent.run.summary import RunSummary
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import TUNED_ON_CUDA, Device
from bench_protocol.payload.doubts import Code
from bench_protocol.payload.result import Evaluation, Measured, Warn
from bench_protocol.training.measured_limits import limits_of


def said_at_the_end(
    summary: RunSummary, server: str | None = None, home: str = "/h", verbose: bool = False
) -> str:
    stream = io.StringIO()
    show_end(Console(file=stream), summary, Home(Path(home)), server, verbose)
    return stream.getvalue()


def test_doubts_are_counted_by_kind_and_the_worst_is_told() -> None:
    load = Warn(code="other_load", figures={"busy_cores": 0.9, "cores": 2.0})
    more = Warn(code="other_load", figures={"busy_cores": 1.4, "cores": 2.0})
    few = Warn(code="few_blocks", figures={"blocks": 3.0})
    results = [
        make_result(cell=make_cell(), warnings=(load,)),
        make_result(cell=make_cell(recipe="tuned"), warnings=(more, few)),
        make_result(cell=make_cell("fashion-mlp")),
    ]
    assert doubts_of(report_of(results)) == [
        "2 of 3 measurements (the worst: mnist-cnn, tensorflow cpu tuned): other programs kept "
        "1.4 of 2 cores busy; fix: close other programs and run again",
        "1 of 3 measurements (mnist-cnn, tensorflow cpu tuned): only 3 blocks were timed; "
        "fix: run again with --budget-seconds 30",
    ]


def test_one_cause_has_one_warning_and_the_worth_of_the_run_comes_first(tmp_path: Path) -> None:
    busy = (
        Warn(code="not_idle", figures={"cpu_percent": 100.0}),
        Warn(code="unsteady", figures={"spread": 0.3}),
        Warn(code="other_load", figures={"busy_cores": 1.8, "cores": 2.0}),
        Warn(code="few_blocks", figures={"blocks": 3.0}),
    )
    summary = summary_of(tmp_path, [make_result(warnings=busy), make_result(warnings=busy[:3])])
    first, second, *rest = said_at_the_end(summary).splitlines()
    assert first == (
        "Not worth sharing: 1 of 1 figure, because the processor was 100 % busy before the start. "
        "To fix it, close other programs and run again."
    )
    assert second == "TensorFlow on the CPU, naive, trains mnist-cnn at about 64,000 samples/s."
    warnings = [line for line in rest if line.startswith("Warning")]
    assert len(warnings) == 1
    assert "only 3 blocks were timed" in warnings[0]
    assert said_at_the_end(summary, verbose=True).count("\nWarning: ") == 4
    calm = summary_of(tmp_path / "calm", [make_result()])
    assert said_at_the_end(calm).startswith("Worth sharing: no other work or heat slowed 1 figure.")
    said = said_at_the_end(summary_of(tmp_path / "failed", [make_failure()]))
    assert said.startswith("Nothing to share.\nNo set-up could be measured.")


def test_a_run_without_a_server_says_what_its_results_cannot_have(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, [make_result()])
    summary.waiting = 1
    assert "; what was measured without --server is never ranked:\n" in said_at_the_end(summary)
    assert "ranked" not in said_at_the_end(summary, "http://server.test")


def test_a_loop_that_we_could_not_measure_is_told_once(tmp_path: Path) -> None:
    cuda = Device(kind="cuda")
    cells = [make_cell(recipe=recipe, device=cuda) for recipe in ("naive", "tuned", "tuned")]
    report = report_of([make_result(cell=cell) for cell in cells])
    assert doubts_of(report).count(TUNED_ON_CUDA) == 1
    assert TUNED_ON_CUDA not in doubts_of(report_of([make_result(cell=cell) for cell in cells[:1]]))
    summary = summary_of(tmp_path, [make_result(cell=cell) for cell in cells])
    assert TUNED_ON_CUDA in said_at_the_end(summary)
    jax = make_result(cell=make_cell(framework="jax", recipe="tuned", device=cuda))
    (line,) = (line for line in doubts_of(report_of([jax])) if "CUDA" in line)
    assert "with JAX on CUDA was 0.64 to 1.07 times as fast as hand-written loops" in line


def test_an_accuracy_pass_is_told_with_its_band() -> None:
    epochs = workload_named("mnist-cnn").epochs
    results = []
    for trained in (2, epochs):
        result = make_result(cell=make_cell(data="real"))
        assert result.measurement is not None
        evaluation = Evaluation(epochs=trained, samples=10_000, loss=0.03, accuracy=0.9912)
        measurement = result.measurement.model_copy(
            update={
                "evaluation": evaluation,
                "data_digest": limits_of(workload_named("mnist-cnn")).bands[0].data_digest,
            }
        )
        results.append(result.model_copy(update={"outcome": Measured(measurement=measurement)}))
    (line,) = accuracy_lines(results)
    assert "accuracy 99.1 % after 10 epochs lies within 97.5 % to 99.8 %" in line


def test_a_run_ends_with_a_table_speed_ups_doubts_and_what_to_do_next(tmp_path: Path) -> None:
    address = "http://server.test/results/0f1e2d3c4b5a6978"
    older = "http://server.test/results/0f1e2d3c4b5a6977"
    summary = summary_of(tmp_path, a_run())
    summary.waiting, summary.sent, summary.addresses = 3, 2, [older, address]
    text = said_at_the_end(summary, home="/home/of/agent", verbose=True)
    rows = [line for line in text.splitlines() if line.startswith("  mlx metal tuned")]
    assert [row.split()[-1] for row in rows] == ["2.00×"] * 4
    # Not over the naive figure that other programs slowed.
    assert text.count("2.00×") == 11
    for line in (
        f"  {address}\n",
        "Failed: fashion-lstm, tensorflow cpu naive: wrong result",
        "mnist-cnn, batch 64: metal: mlx tuned is 3.46 times as fast as tensorflow on cpu (3.",
        "Warning: 3 of 73 measurements (the worst: mnist-cnn, tensorflow cpu naive): other "
        "programs kept 2.1 of 12 cores busy",
        "73 results stored in /home/of/agent/outbox, 2 sent.",
        "The outbox has 3 pending results.",  # and no command that sends them
        "MLX on Metal, tuned, is fastest on 2 of 2 workloads here.\n",
        "Tuned is 2.00 times as fast as naive (11 of 12 pairs undisturbed).\n",
        "A page with charts and every warning:\n  BENCH_HOME=/home/of/agent bench-agent report\n",
    ):
        assert f"\n{line}" in text
    assert "submit" not in text
    assert text.startswith(
        "Not worth sharing: 1 of 24 figures, because other programs kept 2.1 of 12 cores busy. To "
        "fix it, close other programs and run again. The server has them, marked as disturbed, and "
        "uses undisturbed ones where it has any.\n"
    )


def test_a_run_like_a_source_says_where_it_differs(tmp_path: Path) -> None:
    results = [r.model_copy(update={"preset": "m2-max-article"}) for r in a_run()]
    summary = summary_of(tmp_path, results)
    said = said_at_the_end(summary)
    line = "otherwise than published: Adam with Keras' formula and the same weights"
    assert f"\n{line}" in said
    assert summary_document(summary)["corrections"][0] in said
    assert summary_document(summary_of(tmp_path, a_run()))["corrections"] == []
    written = html.unescape(page.html(report_of(results)))
    assert "Like m2-max-article" in written
    assert line in written


def test_a_run_without_results_says_so() -> None:
    assert said_at_the_end(RunSummary(interrupted=True)).splitlines() == [
        "0 results stored in /h/outbox, 0 sent.",
        "Interrupted. To continue:",
        "  BENCH_HOME=/h bench-agent run --resume",
    ]


def test_a_speed_up_over_an_unsteady_cell_has_a_question_mark() -> None:
    stream = io.StringIO()
    show_figures(Console(file=stream), report_of(an_unsteady_run()))
    naive, tuned = (line for line in stream.getvalue().splitlines() if "tensorflow" in line)
    assert "×" not in naive
    assert tuned.endswith("2.00× ?")
    assert "? marks doubt: other work or heat slowed it" in stream.getvalue()


@pytest.mark.parametrize("disturbed", [0, 1])
def test_there_is_no_ratio_of_a_disturbed_figure(disturbed: int) -> None:
    load = Warn(code="other_load", figures={"busy_cores": 1.0, "cores": 2.0})
    results = [make_result(cell=make_cell(recipe=recipe)) for recipe in ("naive", "tuned")]
    assert tuned_words(report_of(results)) == (
        "Tuned is 1.00 times as fast as naive (1 of 1 pair undisturbed)."
    )
    results[disturbed] = results[disturbed].model_copy(update={"warnings": (load,)})
    report = report_of(results)
    assert tuned_words(report) == (
        "Tuned is not compared with naive, because other work or heat slowed them."
    )
    pairs = [make_result(cell=make_cell("fashion-mlp", recipe=r)) for r in ("naive", "tuned")]
    assert tuned_words(report_of([*results, *pairs])) == (
        "Tuned is 1.00 times as fast as naive (1 of 2 pairs undisturbed)."
    )
    assert [bar.note for bar in charts_of(report).recipes[0].bars] == ["", ""]


def test_the_headline_has_at_most_15_words() -> None:
    cell = make_cell(
        "fashion-mlp",
        framework="torch",
        device=Device(kind="cuda", index=1),
        precision="mixed_bfloat16",
        batch_size=256,
        data="real",
    )
    fast = make_result(cell=cell.model_copy(update={"recipe": "tuned"}), step_ns=100_000)
    cells = [make_cell(name) for name in ("mnist-cnn", "fashion-mlp", "fashion-cnn")]
    three = [make_result(cell=cell) for cell in cells]
    three.append(make_result(cell=make_cell("fashion-cnn", recipe="pipeline"), step_ns=100))
    for results, words in (
        ([make_failure()], "No set-up could be measured"),
        ([make_result(cell=cell)], "PyTorch on CUDA:1, naive, mixed_bfloat16, trains fashion-mlp"),
        (
            [make_result(cell=cell), fast],
            "PyTorch on CUDA:1, tuned, mixed_bfloat16, is fastest here",
        ),
        (an_unsteady_run(), "TensorFlow on the CPU, tuned, is fastest here: 64,000 samples/s on"),
        (three, "TensorFlow on the CPU, naive, is fastest on 2 of 3 workloads here"),
    ):
        sentence = headline(report_of(results))
        assert sentence.startswith(words)
        assert len(sentence.split()) <= 15


def test_every_kind_of_warning_has_a_fix() -> None:
    assert set(FIXES) == set(get_args(Code))


def test_what_waits_for_a_server_names_it() -> None:
    said = said_at_the_end(RunSummary(waiting=1, server_unreachable=True), "http://server.test")
    assert "\n  BENCH_HOME=/h bench-agent submit --server http://server.test\n" in said


def test_results_of_earlier_runs_that_were_sent_too_are_named() -> None:
    end = "0 results stored in /h/outbox, 10 sent, 2 of them from earlier runs.\n"
    assert said_at_the_end(RunSummary(sent=10, sent_earlier=2)) == end


def test_a_run_ends_with_where_the_machine_stands_and_one_address(tmp_path: Path) -> None:
    page = "http://server.test/machines/0f1e2d3c4b5a6978"
    summary = summary_of(tmp_path, [make_result()])
    summary.sent, summary.addresses = 1, ["http://server.test/results/1"]
    summary.rank = MachineRank(page, "15th of 47 on mnist-cnn")
    lines = said_at_the_end(summary).splitlines()
    assert lines[0].startswith("Worth sharing")
    assert lines[-2:] == ["This hardware is 15th of 47 on mnist-cnn.", f"  {page}"]
    assert not any("/results/" in line for line in lines)
    summary.waiting = 2
    (*_, last) = what_is_where(summary, Home(Path("/h")), "http://server.test", advise=False)
    assert last == "The outbox has 2 pending results."
    summary.interrupted = True
    (*_, last) = what_is_where(summary, Home(Path("/h")), "http://server.test")
    assert last.endswith("bench-agent run --resume --server http://server.test")
    document = summary_document(summary)
    assert (document["machine_page"], document["rank"]) == (page, "15th of 47 on mnist-cnn")
    assert (document["sent"], document["sent_earlier"]) == (1, 0)
