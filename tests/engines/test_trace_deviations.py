"""The developer's program that limits of traces are chosen from."""

import pytest
from benchmarks.limits import __main__ as limits
from benchmarks.limits import trace_deviations
from tests.fakes.workloads import cell_of

from bench_agent import engines
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.training import conformance

from .conftest import installed

# Under it rounding decides a ReLU of fashion-mlp: a loss is 7e-5 off.
KINKED = "f88bd7605d0bd4dd1f37572d10d6ab76b42181a6d080a139d4576b1eadefcb70"


def test_an_honest_trace_may_be_beyond_a_constant_limit() -> None:
    workload = workload_named("fashion-mlp")
    cell = cell_of(workload, "torch", "naive")
    engine = installed("torch")
    engine.load(workload, cell)
    made = trace_deviations.traced(engine, workload, cell, KINKED)
    assert 6e-5 < made.losses[conformance.TRACED.index("workload")] < 8e-5
    assert made.losses[conformance.TRACED.index("sgd")] < 1e-6
    assert (made.beyond_constants, made.wrong) == (True, False)


def test_it_prints_a_line_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    framework = engines.names()[-1]
    installed(framework)
    asked = ["mnist-dense", "--only", "traces", "--framework", framework, "--recipe", "naive"]
    assert limits.main([*asked, "--nonces", "2"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("wrong results: 0 by constant limits, 0 by those in use")
    assert f"mnist-dense {framework} cpu naive batch 32 float32 generated, 2 nonces" in line
