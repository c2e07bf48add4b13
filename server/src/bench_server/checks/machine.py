"""Checks of the machine: the device of the cell trained it, on samples that exist, within its
power."""

from .case import Case
from .verdicts import Finding

# Sensors read a little above the limit that the driver enforces over longer windows.
POWER_MARGIN = 1.05


def placement(case: Case) -> Finding:
    placement = case.measured.placement
    return Finding(
        placement.matches,
        f"the framework reports the work on {placement.reported}",
        {"reported": placement.reported},
    )


def device_listed(case: Case) -> Finding:
    device = case.result.cell.device
    listed = device.kind == "cpu" or any(
        (gpu.kind, gpu.index) == (device.kind, device.index) for gpu in case.result.machine.gpus
    )
    word = "lists" if listed else "does not list"
    return Finding(listed, f"the machine {word} the device {device}", {"device": str(device)})


def batch_fits(case: Case) -> Finding:
    batch, samples = case.result.cell.batch_size, case.workload.data_set.train_samples
    return Finding(
        batch <= samples,
        f"batch {batch:,} of {samples:,} training samples",
        {"batch_size": batch, "train_samples": samples},
    )


def mean_power(case: Case) -> Finding:
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
        sentence = "no power of the device to compare with its limit"
        return Finding(True, sentence, {}, checked=False)
    watts = energy.energy_mj / 1e3 / (energy.window_ns / 1e9)
    return Finding(
        watts <= limit * POWER_MARGIN,
        f"mean power {watts:,.4g} W, the limit is {limit:,.4g} W",
        {"mean_watts": watts, "limit_watts": limit},
    )
