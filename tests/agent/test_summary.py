"""The end of a run in words."""

from tests.fakes.results import make_cell, make_result

from bench_agent.summary import doubt_lines
from bench_protocol.result import Warn


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
