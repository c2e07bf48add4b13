"""Check that the machine is idle and cool: power, clocks, heat, other load. These never fail."""

from collections.abc import Iterator, Sequence
from typing import Literal

from bench_protocol.base.format import plural

from ..base.install_hints import Pip
from ..machine.sensors import Governor, GpuUse, Load, Power
from .finding import Finding

BUSY_LOAD_PER_CORE = 0.5
BUSY_PRESSURE_PERCENT = 20.0
BUSY_GPU_PERCENT = 10
# With these drivers "powersave" means that the processor chooses its clock itself.
SELF_GOVERNED = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")


def check_power(power: Power, system: str) -> Iterator[Finding]:
    """Check for battery and low-power mode: both slow everything down."""
    if power.on_battery is None and power.low_power_mode is None:
        yield Finding("power", "skip", "no battery, or the system does not report one")
        return
    quiet = True
    if power.low_power_mode:
        quiet = False
        mac = f"sudo pmset -a {'powermode' if power.mode else 'lowpowermode'} 0"
        hint = mac if system == "Darwin" else "powerprofilesctl set performance"
        yield Finding("power.mode", "warn", "low-power mode slows everything down", hint)
    if power.on_battery:
        quiet = False
        sentence = "on battery, which slows everything down"
        yield Finding("power.battery", "warn", sentence, "connect the charger")
    if quiet:
        mode = ", High Power Mode" if power.mode == "high-power" else ""
        yield Finding("power", "ok", f"on mains power, no low-power mode{mode}")


def check_governor(governor: Governor | None) -> Iterator[Finding]:
    """Check the CPU governor: a power-saving one changes the figures."""
    if governor is None:
        yield Finding("governor", "skip", "the system does not let the clock be chosen")
    elif governor.turbo is False:
        yield Finding(
            "governor",
            "warn",
            "turbo clocks are switched off",
            "echo 0 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
        )
    elif governor.driver in SELF_GOVERNED and governor.name == "powersave":
        if governor.preference == "power":
            yield Finding(
                "governor",
                "warn",
                "the processor is set to save power",
                "echo balance_performance | sudo tee "
                "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
            )
        else:
            yield Finding("governor", "ok", f"the processor chooses its clock ({governor.driver})")
    elif governor.name in ("powersave", "conservative", "ondemand"):
        yield Finding(
            "governor",
            "warn",
            f"the governor {governor.name} raises the clock late or never",
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        )
    else:
        yield Finding("governor", "ok", f"the governor is {governor.name}")


def check_thermal(pressure: str | None, throttled: int | None) -> Iterator[Finding]:
    """Check for heat: a hot machine is slow.

    Args:
        pressure: macOS' level in words (:data:`~bench_agent.machine.apple_state.THERMAL_LEVELS`).
        throttled: how often Linux slowed cores down while doctor looked.
    """
    if pressure is None and throttled is None:
        yield Finding("thermal", "skip", "the system does not report its thermal state")
    elif pressure not in (None, "nominal") or throttled:
        cause = f"thermal pressure is {pressure}" if pressure else "cores are being slowed by heat"
        yield Finding("thermal", "warn", f"{cause}: the machine must cool", "sleep 300")
    else:
        yield Finding("thermal", "ok", "no thermal pressure")


def check_energy(source: str | None, problem: str | None, system: str) -> Iterator[Finding]:
    """Check whether results will contain energy. Speed does not need it.

    Args:
        source: name of the counter that can be read, or None.
        problem: why there is none.
    """
    if source is not None:
        yield Finding("energy", "ok", f"energy comes from {source}")
    elif system == "Darwin":
        sentence = f"results will contain no energy: {problem}"
        yield Finding("energy", "warn", sentence, Pip().install_extras("energy"))
    else:
        yield Finding("energy", "skip", f"results will contain no energy: {problem}")


def check_busy(load: Load) -> Iterator[Finding]:
    """Check for other load on the processor or the GPU: it slows every figure down."""
    signs = []
    if load.load is not None and load.load / max(1, load.cores) > BUSY_LOAD_PER_CORE:
        signs.append(f"load {load.load:.1f} on {load.cores} cores")
    if load.pressure_percent is not None and load.pressure_percent > BUSY_PRESSURE_PERCENT:
        signs.append(f"tasks wait for a core {load.pressure_percent:.0f} % of the time")
    if signs:
        most = load.busiest
        known = most and most[1] > 20
        culprit = f"; busiest: {most[0]} with {most[1]:.0f} %" if most and known else ""
        hint = f"close {most[0] if most and known else 'other programs'}, or wait until it is done"
        yield Finding("busy", "warn", f"other work runs: {', '.join(signs)}{culprit}", hint)
    else:
        yield Finding("busy", "ok", "the processor is idle")
    yield from _gpus(load.gpus)


def _gpus(gpus: Sequence[GpuUse]) -> Iterator[Finding]:
    for number, gpu in enumerate(gpus):
        subject: str = f"busy.gpu{number}"
        verdict: Literal["ok", "warn"] = "ok"
        sentence, hint = f"{gpu.name} is idle", None
        if gpu.processes or (gpu.busy_percent or 0) > BUSY_GPU_PERCENT:
            verdict = "warn"
            use = f"{gpu.busy_percent} % busy" if gpu.busy_percent is not None else "in use"
            by = plural(gpu.processes, "process", "processes") if gpu.processes else ""
            sentence = f"{gpu.name} is {use}{by and f', used by {by}'}"
            hint = "close the programs that use this GPU"
        yield Finding(subject, verdict, sentence, hint)
