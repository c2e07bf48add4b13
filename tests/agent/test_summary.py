"""The end of a run in words."""

from tests.fakes.results import make_cell, make_result

from bench_agent.summary import accuracy_lines, doubt_lines
from bench_protocol.catalogue import workload_named
from bench_protocol.result import Evaluation, Measured, Warn


def test_doubts_are_counted_by_kind() -> None:
    load = Warn(code="other_load", figures={"busy_cores": 0.9, "cores": 2.0})
    few = Warn(code="few_blocks", figures={"blocks": 3.0})
    results = [
        make_result(cell=make_cell(), warnings=(load,)),
        make_result(cell=make_cell(recipe="tuned"), warnings=(load, few)),
        make_result(cell=make_cell("fashion-mlp")),
    ]
    naive, tuned = results[0].cell, results[1].cell
    assert doubt_lines(results) == [
        "Warning, 2 of 3 measurements: other programs kept 0.9 of 2 cores busy "
        f"({naive}, and others)",
        f"Warning, 1 of 3 measurements: only 3 blocks timed ({tuned})",
    ]


def test_an_accuracy_pass_is_told_with_its_band() -> None:
    epochs = workload_named("mnist-cnn").epochs
    results = []
    for trained in (2, epochs):
        result = make_result(cell=make_cell(data="real"))
        assert result.measurement is not None
        evaluation = Evaluation(epochs=trained, samples=10_000, loss=0.03, accuracy=0.9912)
        measurement = result.measurement.model_copy(update={"evaluation": evaluation})
        results.append(result.model_copy(update={"outcome": Measured(measurement=measurement)}))
    (line,) = accuracy_lines(results)
    assert "accuracy 99.1 % after 10 epochs lies within 97.5 % to 99.8 %" in line
