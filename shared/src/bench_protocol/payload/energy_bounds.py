"""Bounds of an energy: a power and FLOPs a joule that nothing has.

Only the sender reads the counter. An energy beyond a bound is no figure: the agent leaves it out
with the reason, and the server does the same.
"""

from ..catalogue.catalogue import workload_named
from .figures import energy_per_sample_mj
from .readings import Energy
from .result import Result

# Chosen, not measured: a counter that stands still reads less, and whatever computes takes more.
LEAST_WATTS = 0.3
# About twice the largest specified: 500 W a processor package (data sheets of AMD EPYC 9965 and
# Intel Xeon 6980P, 2024), 1,400 W a GPU board (AMD Instinct MI355X, 2025).
MOST_PACKAGE_WATTS, MOST_BOARD_WATTS = 1_000, 3_000
# More sockets than x86 processors connect without a node controller.
MOST_PACKAGES = 8
# Sensors read a little above the limit that the driver enforces over longer windows.
LIMIT_MARGIN = 1.05
# Four times the best data sheet: 2.25 PFLOP/s of dense half precision at 1 kW (NVIDIA B200, 2024).
MOST_FLOPS_A_JOULE = 1e13


def watts(energy: Energy) -> float | None:
    """Mean power over the window; None without an energy."""
    if energy.energy_mj is None or energy.window_ns is None:
        return None
    return energy.energy_mj * 1e6 / energy.window_ns


def power_problem(energy: Energy, packages: int = MOST_PACKAGES) -> str | None:
    """Why its mean power is impossible, or None. ``packages``: those that the counter adds up."""
    power = watts(energy)
    board = energy.scope == "gpu"
    most = MOST_BOARD_WATTS if board else MOST_PACKAGE_WATTS * min(packages, MOST_PACKAGES)
    if power is None or LEAST_WATTS <= power <= most:
        return None
    takes = "1 processor package takes"
    if board or packages > 1:
        takes = "a GPU board takes" if board else f"{packages} processor packages take"
    limit = f"{takes} at least {LEAST_WATTS:g} W and at most {most:,} W"
    return f"the energy is no figure: its mean power is {power:,.3g} W, and {limit}"


def problem(result: Result) -> str | None:
    """Why the energy of a result is no figure, or None if it may be one or there is none."""
    measured, cell = result.measurement, result.cell
    if measured is None or (power := watts(measured.energy)) is None:
        return None
    if impossible := power_problem(measured.energy, result.machine.cpu.sockets or 1):
        return impossible
    limit = _limit(result)
    if limit is not None and power > LIMIT_MARGIN * limit:
        return (
            f"the energy is no figure: its mean power is {power:,.4g} W, and the GPU's limit is "
            f"{limit:,.4g} W"
        )
    joules = (energy_per_sample_mj(measured, cell.batch_size) or 0) / 1e3
    flops = workload_named(cell.workload).training_flops_per_sample
    if flops <= MOST_FLOPS_A_JOULE * joules:
        return None
    return (
        f"the energy is no figure: {flops / joules:,.2g} FLOPs a joule, and every device stays "
        f"below {MOST_FLOPS_A_JOULE:g}"
    )


def _limit(result: Result) -> float | None:
    """The power limit in force of the GPU that the energy is of."""
    measured, gpu = result.measurement, result.machine.gpu(result.cell.device)
    if measured is None or measured.energy.scope != "gpu" or gpu is None:
        return None
    return gpu.power_limit_watts
