"""What is checked of a result, in one table: pure functions of the result alone, which can be run
before anything else is known of it. What is checked of how it came in: :mod:`.submission_checks`.

A failed check never refuses a result: it is kept and shown with the reason. What failing does:

=============  ===============================================================================
``unranked``   it is certainly wrong, and does not count
``quarantined``  it may be new hardware or an invention: the operator looks before it counts
``stale``      nothing shows that it was measured just now: trust level 1
``doubtful``   it counts, at trust level 2 at most
=============  ===============================================================================

Adding a check is adding a row to ``CHECKS``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from bench_protocol import accuracy, conformance
from bench_protocol.catalogue import workload_named
from bench_protocol.hardware import hardware_name
from bench_protocol.result import Measured, Measurement, Result
from bench_protocol.workloads import Workload

from ..ranking import peaks
from .verdicts import CheckVerdict, Effect, Finding

# Above the dense peak of any single device in any precision (2026), with Winograd's 2.25 on top.
BEYOND_ANY_DEVICE_FLOPS = 2.25 * 2e16
# Clocks of one card differ from the data sheet's boost clock by a few percent.
PEAK_MARGIN = 1.10
# Room for the rounding of two clocks; contradictions worth naming are far larger.
CLOCK_TOLERANCE = 1.01
# Sensors read a little above the limit that the driver enforces over longer windows.
POWER_MARGIN = 1.05


@dataclass(frozen=True)
class Case:
    """One result before its checks."""

    result: Result
    measured: Measurement
    workload: Workload

    @cached_property
    def conformance(self) -> conformance.ConformanceVerdict:
        """What the traces show."""
        return conformance.verdict(self.result.cell, self.measured.traces)


def of_result(result: Result) -> tuple[CheckVerdict, ...]:
    """Run every check of what was measured; none where nothing was."""
    if result.measurement is None:
        return ()
    case = Case(result, result.measurement, workload_named(result.cell.workload))
    return tuple(CheckVerdict.of(name, effect, check(case)) for name, effect, check in CHECKS)


def failure(result: Result) -> str | None:
    """Why a result that is no measurement does not count, or None if it is one."""
    if isinstance(result.outcome, Measured):
        return None
    kind = result.outcome.kind.replace("_", " ")
    return f"{kind} during {result.outcome.phase.replace('_', ' ')}"


def _parameter_count(case: Case) -> Finding:
    found, wanted = case.measured.parameter_count, case.workload.parameter_count
    return Finding(
        found == wanted,
        f"the model has {found:,} parameters, the workload has {wanted:,}",
        {"parameters": found, "wanted": wanted},
    )


def _finite_loss(case: Case) -> Finding:
    loss = case.measured.last_loss
    sentence = f"the last loss is {'not finite' if loss is None else 'finite'}"
    return Finding(loss is not None, sentence, {"last_loss": loss})


def _falling_loss(case: Case) -> Finding:
    """After an epoch, the loss is below that of guessing: the logarithm of the classes."""
    blocks, cell = case.measured.blocks, case.result.cell
    steps = blocks.warm_up_steps + blocks.steps_per_block * len(blocks.durations_ns)
    epoch = case.workload.steps_per_epoch(cell.batch_size)
    guessing = math.log(case.workload.data_set.classes)
    loss = case.measured.last_loss
    numbers = {"last_loss": loss, "guessing": guessing, "steps": steps, "steps_per_epoch": epoch}
    if steps < epoch or loss is None:
        sentence = f"{steps:,} of an epoch's {epoch:,} steps are too few to judge the loss by"
        return Finding(True, sentence, numbers, checked=False)
    sentence = f"the last loss is {loss:.3g}; guessing gives {guessing:.3g}"
    return Finding(loss < guessing, sentence, numbers)


def _placement(case: Case) -> Finding:
    placement = case.measured.placement
    return Finding(
        placement.matches,
        f"the framework reports the work on {placement.reported}",
        {"reported": placement.reported},
    )


def _device_listed(case: Case) -> Finding:
    device = case.result.cell.device
    listed = device.kind == "cpu" or any(
        (gpu.kind, gpu.index) == (device.kind, device.index) for gpu in case.result.machine.gpus
    )
    word = "lists" if listed else "does not list"
    return Finding(listed, f"the machine {word} the device {device}", {"device": str(device)})


def _batch_fits(case: Case) -> Finding:
    batch, samples = case.result.cell.batch_size, case.workload.data_set.train_samples
    return Finding(
        batch <= samples,
        f"batch {batch:,} of {samples:,} training samples",
        {"batch_size": batch, "train_samples": samples},
    )


def _times_fit(case: Case) -> Finding:
    """Timed blocks and start-up lie inside the repeat, so their sum cannot exceed it."""
    startup, blocks, clocks = case.measured.startup, case.measured.blocks, case.result.clocks
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
    whole_ns = clocks.finished_ns - clocks.started_ns
    return Finding(
        parts_ns <= whole_ns * CLOCK_TOLERANCE,
        f"the measured parts take {parts_ns / 1e9:,.3f} s of the repeat's {whole_ns / 1e9:,.3f} s",
        {"parts_ns": parts_ns, "repeat_ns": whole_ns},
    )


def _possible_speed(case: Case) -> Finding:
    flops = _flops(case, min(case.measured.blocks.durations_ns))
    return Finding(
        flops <= BEYOND_ANY_DEVICE_FLOPS,
        f"the fastest block stands for {flops / 1e12:,.3g} TFLOP/s",
        {"flops": flops},
    )


def _below_peak(case: Case) -> Finding:
    """The median block against the vendor's peak; 3x3 convolutions may save 2.25 of the
    multiplications (Lavin and Gray 2016, Winograd's F(2x2, 3x3))."""
    cell = case.result.cell
    flops = _flops(case, median(case.measured.blocks.durations_ns))
    hardware = hardware_name(case.result.machine, cell.device)
    peak = peaks.peak_flops(hardware, cell.precision)
    if peak is None:
        sentence = f"{flops / 1e12:,.3g} TFLOP/s; no vendor's peak is known for {hardware}"
        return Finding(True, sentence, {"flops": flops}, checked=False)
    saving = 2.25 if any(getattr(layer, "kernel", 0) == 3 for layer in case.workload.layers) else 1
    bound = peak * saving * PEAK_MARGIN
    return Finding(
        flops <= bound,
        f"{flops / 1e12:,.3g} TFLOP/s; the vendor's peak of {peak / 1e12:,.4g} allows "
        f"{bound / 1e12:,.4g}",
        {"flops": flops, "peak_flops": peak, "bound_flops": bound},
    )


def _mean_power(case: Case) -> Finding:
    """Energy over its window against the limit in force, where both are of the GPU."""
    energy, device = case.measured.energy, case.result.cell.device
    limit = next(
        (
            gpu.power_limit_watts
            for gpu in case.result.machine.gpus
            if (gpu.kind, gpu.index) == (device.kind, device.index)
        ),
        None,
    )
    if limit is None or energy.scope != "gpu" or not energy.energy_mj or not energy.window_ns:
        sentence = "no power of the device to hold against its limit"
        return Finding(True, sentence, {}, checked=False)
    watts = energy.energy_mj / 1e3 / (energy.window_ns / 1e9)
    return Finding(
        watts <= limit * POWER_MARGIN,
        f"mean power {watts:,.4g} W, the limit is {limit:,.4g} W",
        {"mean_watts": watts, "limit_watts": limit},
    )


def _accuracy(case: Case) -> Finding:
    """After full epochs, where a band is known for the data; what cannot be checked passes."""
    found = accuracy.judge(case.workload, case.result.cell.data, case.measured)
    return Finding(
        found.verdict != "diverged",
        found.sentence,
        {"verdict": found.verdict},
        checked=found.verdict != "accuracy_unchecked",
    )


def _right_computation(case: Case) -> Finding:
    """No loss of the traces is so far off that another computation was timed."""
    found = case.conformance
    wrong = found.kind == "wrong_result"
    sentence = found.reason if wrong else "nothing shows that another computation was timed"
    held = found.deviation is not None
    return Finding(not wrong, sentence, {"verdict": found.kind}, checked=held)


def _conformance(case: Case) -> Finding:
    """Every loss of the traces is within the measured tolerance of the reference's."""
    found = case.conformance
    off = found.deviation
    numbers = {"verdict": found.kind, "deviation": None if off == math.inf else off}
    return Finding(found.kind == "conformant", found.reason, numbers)


def _flops(case: Case, block_ns: float) -> float:
    samples = case.measured.blocks.steps_per_block * case.result.cell.batch_size
    return case.workload.training_flops_per_sample * samples * 1e9 / block_ns


CHECKS: tuple[tuple[str, Effect, Callable[[Case], Finding]], ...] = (
    ("parameter_count", "unranked", _parameter_count),
    ("finite_loss", "unranked", _finite_loss),
    ("placement", "unranked", _placement),
    ("device_listed", "unranked", _device_listed),
    ("batch_fits", "unranked", _batch_fits),
    ("times_fit", "unranked", _times_fit),
    ("possible_speed", "unranked", _possible_speed),
    ("accuracy", "unranked", _accuracy),
    ("right_computation", "unranked", _right_computation),
    ("below_peak", "quarantined", _below_peak),
    ("conformance", "doubtful", _conformance),
    ("falling_loss", "doubtful", _falling_loss),
    ("mean_power", "doubtful", _mean_power),
)
