"""The results of a whole run, for tests of reports."""

from tests.fakes.results import make_cell, make_failure, make_machine, make_result

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.result import Measured, Result, Warn

RUN = "c" * 32
MACHINE = make_machine("Apple M2 Max <i>", ("metal", "Apple M2 Max", 30))
PACE = {("tensorflow", "cpu"): 900, ("tensorflow", "metal"): 420, ("mlx", "metal"): 260}
NUDGES = (0, 7, -9)


def a_run(repeats: int = 3) -> list[Result]:
    """Two workloads, one at three batch sizes, on two devices; one is disturbed, one fails."""
    results = []
    for workload, batches in (("mnist-cnn", (64,)), ("fashion-mlp", (32, 128, 512))):
        for (framework, device), microseconds in PACE.items():
            for recipe, share in (("naive", 1000), ("tuned", 500)):
                for batch in batches:
                    cell = make_cell(
                        workload,
                        framework=framework,
                        device=Device(kind=device),  # type: ignore[arg-type]
                        recipe=recipe,
                        batch_size=batch,
                    )
                    results += [
                        make_result(
                            run_id=RUN,
                            repeat=number,
                            cell=cell,
                            machine=MACHINE,
                            step_ns=microseconds * (share + nudge),
                        )
                        for number, nudge in enumerate(NUDGES[:repeats], 1)
                    ]
    load = Warn(code="other_load", figures={"busy_cores": 2.1, "cores": 12.0})
    results[:repeats] = [r.model_copy(update={"warnings": (load,)}) for r in results[:repeats]]
    return [*results, make_failure("wrong_result", run_id=RUN, cell=make_cell("fashion-lstm"))]


def an_unsteady_run() -> list[Result]:
    """``naive`` with blocks of alternately 10 and 30 ms, and ``tuned`` with blocks of 10 ms."""
    results = []
    for recipe, times in (("naive", (10_000_000, 30_000_000)), ("tuned", (10_000_000,) * 2)):
        result = make_result(cell=make_cell(recipe=recipe))
        assert result.measurement is not None
        blocks = result.measurement.blocks.model_copy(update={"durations_ns": times * 6})
        measured = Measured(measurement=result.measurement.model_copy(update={"blocks": blocks}))
        results.append(result.model_copy(update={"outcome": measured}))
    return results
