"""Checks of a result against itself and its workload: pure, and each of them certain.

A failed check never refuses a result. It is kept and shown with the reason, and does not count.
Adding a check is adding a function to ``CHECKS``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bench_protocol.result import Measured, Measurement, Result
from bench_protocol.workloads import Workload

# Above the dense peak of any single device in any precision (2026), with Winograd's 2.25 on top.
BEYOND_ANY_DEVICE_FLOPS = 2.25 * 2e16
# Room for the rounding of two clocks; contradictions worth naming are far larger.
CLOCK_TOLERANCE = 1.01


@dataclass(frozen=True)
class Verdict:
    """What one check found. ``sentence`` is for people, with the figures in it."""

    check: str
    passed: bool
    sentence: str


def verdicts(result: Result, workload: Workload) -> tuple[Verdict, ...]:
    """Run every check on what was measured; none where nothing was."""
    measured = result.measurement
    if measured is None:
        return ()
    return tuple(check(result, measured, workload) for check in CHECKS)


def unranked_reason(result: Result, found: tuple[Verdict, ...]) -> str | None:
    """Why this result counts in no ranking, or None if it does."""
    if not isinstance(result.outcome, Measured):
        kind = result.outcome.kind.replace("_", " ")
        return f"{kind} during {result.outcome.phase.replace('_', ' ')}"
    return next((verdict.sentence for verdict in found if not verdict.passed), None)


def _parameter_count(_result: Result, measured: Measurement, workload: Workload) -> Verdict:
    found, wanted = measured.parameter_count, workload.parameter_count
    return Verdict(
        "parameter_count",
        found == wanted,
        f"the model has {found:,} parameters, the workload has {wanted:,}",
    )


def _finite_loss(_result: Result, measured: Measurement, _workload: Workload) -> Verdict:
    finite = measured.last_loss is not None
    return Verdict(
        "finite_loss", finite, f"the last loss is {'finite' if finite else 'not finite'}"
    )


def _placement(_result: Result, measured: Measurement, _workload: Workload) -> Verdict:
    return Verdict(
        "placement",
        measured.placement.matches,
        f"the framework reports the work on {measured.placement.reported}",
    )


def _device_listed(result: Result, _measured: Measurement, _workload: Workload) -> Verdict:
    device = result.cell.device
    listed = device.kind == "cpu" or any(
        (gpu.kind, gpu.index) == (device.kind, device.index) for gpu in result.machine.gpus
    )
    word = "lists" if listed else "does not list"
    return Verdict("device_listed", listed, f"the machine {word} the device {device}")


def _batch_fits(result: Result, _measured: Measurement, workload: Workload) -> Verdict:
    batch, samples = result.cell.batch_size, workload.data_set.train_samples
    return Verdict(
        "batch_fits", batch <= samples, f"batch {batch:,} of {samples:,} training samples"
    )


def _times_fit(result: Result, measured: Measurement, _workload: Workload) -> Verdict:
    """Timed blocks and start-up lie inside the repeat, so their sum cannot exceed it."""
    startup, blocks = measured.startup, measured.blocks
    parts_ns = sum(
        (
            startup.import_ns,
            startup.data_ns,
            startup.build_ns,
            startup.first_step_ns,
            blocks.warm_up_ns,
            *blocks.durations_ns,
        )
    )
    whole_ns = result.clocks.finished_ns - result.clocks.started_ns
    return Verdict(
        "times_fit",
        parts_ns <= whole_ns * CLOCK_TOLERANCE,
        f"the measured parts take {parts_ns / 1e9:,.3f} s of the repeat's {whole_ns / 1e9:,.3f} s",
    )


def _possible_speed(result: Result, measured: Measurement, workload: Workload) -> Verdict:
    blocks = measured.blocks
    samples = blocks.steps_per_block * result.cell.batch_size
    flops = workload.training_flops_per_sample * samples * 1e9 / min(blocks.durations_ns)
    return Verdict(
        "possible_speed",
        flops <= BEYOND_ANY_DEVICE_FLOPS,
        f"the fastest block stands for {flops / 1e12:,.3g} TFLOP/s",
    )


CHECKS: tuple[Callable[[Result, Measurement, Workload], Verdict], ...] = (
    _parameter_count,
    _finite_loss,
    _placement,
    _device_listed,
    _batch_fits,
    _times_fit,
    _possible_speed,
)
