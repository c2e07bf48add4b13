"""The command line shows a workload of tokens in tokens per second."""

import pytest
from tests.fakes import results

from bench_agent.output import ab_table, documents, summary
from bench_agent.output.report import page
from bench_agent.output.report.figures import report_of
from bench_agent.output.report.remarks import headline
from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.modern import CHARACTERS
from bench_protocol.payload.readings import Energy
from bench_protocol.payload.result import Result

# 64 samples of 256 tokens a millisecond.
TOKENS = "16,384,000 tokens/s"


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> Result:
    """A cell of another workload whose data, as this test has it, is a text."""
    monkeypatch.setitem(speeds.DATA_SETS, "mnist-cnn", CHARACTERS)
    return results.make_result()


def test_every_line_and_document_has_tokens(result: Result) -> None:
    report = report_of([result])
    assert documents.one_line(result) == TOKENS
    assert TOKENS in headline(report)
    assert TOKENS in str(summary._row(report, report.cells[0])[1])
    assert TOKENS in page.html(report)
    document = documents.result_document(result)
    rate = document["samples_per_second"]
    assert (document["unit"], document["tokens_per_second"]) == ("token", 256 * rate)
    sides = {
        side: {"samples_per_second": [rate], "cell": {"workload": "mnist-cnn"}} for side in "ab"
    }
    verdict = {"speed_up": 1.0, "speed_up_low": None, "speed_up_high": None, "verdict": "-"}
    assert ab_table.verdict_line(sides | verdict).endswith(f"16,384,000 against {TOKENS})")


def test_energy_is_of_a_sample_and_of_a_token(result: Result) -> None:
    energy = Energy(source="rapl", scope="cpu_package", energy_mj=60_000, window_ns=10**10)
    measured = results.make_measurement(result.cell, energy=energy)
    document = documents.result_document(results.make_result(measurement=measured))
    # 6 W for 1 ms, over 64 samples of 256 tokens.
    assert document["energy_per_sample_mj"] == pytest.approx(6 / 64)
    assert document["energy_per_token_mj"] == pytest.approx(6 / 64 / 256)
