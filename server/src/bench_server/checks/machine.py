"""Checks of the machine: the device of the cell trained it, on samples that exist, with an energy
that is possible."""

from bench_protocol.payload import energy_bounds

from .case import Case
from .verdicts import Finding


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


def energy(case: Case) -> Finding:
    """The energy is within the bounds of its device. Beyond them it is in no figure, and the speed
    counts."""
    energy = case.measured.energy
    watts = energy_bounds.watts(energy)
    if watts is None:
        sentence = f"it has no energy: {energy.reason or 'it gives no reason'}"
        return Finding(True, sentence, {}, checked=False)
    problem = energy_bounds.problem(case.result)
    sentence = problem or f"its mean power, {watts:,.4g} W, is possible"
    return Finding(problem is None, sentence, {"mean_watts": watts})
