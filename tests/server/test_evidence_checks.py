"""Checks of the evidence, which a ranked result of each version has, and of its long trace."""

import pytest
from tests.fakes import results
from tests.fakes.seeding import with_traces
from tests.server.test_witness_checks import failed, level, verdicts

from bench_protocol.payload.result import Failed


def test_traces_in_float32_belong_to_mixed_precision() -> None:
    cell = results.make_cell("mnist-dense", precision="mixed_bfloat16")
    traces = results.make_traces(cell)
    assert [trace.precision for trace in traces] == [None, None, "float32", "float32", None]
    assert not failed(results.make_complete(cell, traces=traces))
    without = results.make_complete(cell, traces=(*traces[:2], traces[-1]))
    assert failed(without) == {"evidence": "unranked"}
    assert verdicts(without)["evidence"].figures["missing"] == [
        "a trace under SGD in float32",
        "a trace under the workload's optimiser in float32",
    ]
    off = tuple(1.001 * (loss or 0) for loss in traces[2].losses)
    wrong = traces[2].model_copy(update={"losses": off})
    result = results.make_complete(cell, traces=(*traces[:2], wrong, *traces[3:]))
    assert failed(result) == {"right_computation": "unranked", "conformance": "doubtful"}
    assert "in float32 the sgd trace is off" in verdicts(result)["right_computation"].sentence


def test_a_failed_repeat_needs_no_evidence() -> None:
    measurement = results.make_measurement(results.make_cell())
    outcome = Failed(kind="crashed", phase="conformance", measurement=measurement)
    verdict = verdicts(results.make_result(outcome=outcome))["evidence"]
    assert (verdict.passed, verdict.checked) == (True, False)


@pytest.mark.parametrize("is_session", [True, False])
def test_seeds_of_another_nonce_are_not_ranked(is_session: bool) -> None:
    result = results.make_complete()
    first, *others = results.make_traces(result.cell)
    if is_session:
        result = result.model_copy(update={"seed": "1" * 32})
    else:
        result = with_traces(result, [first.model_copy(update={"seed": "1" * 32}), *others])
    assert failed(result)["evidence"] == "unranked"
    assert "seeds that follow from its nonce" in verdicts(result)["evidence"].sentence


@pytest.mark.parametrize("missing", ["witness", "window"])
def test_a_result_without_a_part_is_not_ranked(missing: str) -> None:
    result = results.make_complete(**{missing: None})
    assert failed(result) == {"evidence": "unranked", missing: "doubtful"}
    assert level(result) == 2


def test_a_result_without_traces_is_not_ranked() -> None:
    result = results.make_complete(traces=results.make_traces(results.make_cell())[:2])
    assert failed(result) == {"evidence": "unranked", "long_trace": "doubtful"}
    result = results.make_complete(traces=())
    assert failed(result)["evidence"] == "unranked"


def test_a_large_workload_has_no_long_trace() -> None:
    result = results.make_complete(results.make_cell("cifar100-vgg16"), {"step_ns": 10**9})
    verdict = verdicts(result)["long_trace"]
    assert (verdict.passed, verdict.checked) == (True, False)
