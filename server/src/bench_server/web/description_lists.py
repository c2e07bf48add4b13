"""Facts of a result as label and text, for description lists. Unknown facts are left out."""

from typing import NamedTuple

from bench_protocol.base import format as people
from bench_protocol.payload import energy_bounds, figures
from bench_protocol.payload.machine import Environment, Gpu, Machine
from bench_protocol.payload.readings import Conditions
from bench_protocol.payload.result import Failed, Result


class Fact(NamedTuple):
    """One line of a list of facts."""

    label: str
    value: str


def training_facts(result: Result) -> tuple[Fact, ...]:
    cell, outcome, measured = result.cell, result.outcome, result.measurement
    pairs: list[tuple[str, object]] = [
        ("Workload", f"{cell.workload} ({cell.workload_digest[:12]})"),
        ("Set-up", f"{cell.framework}, {cell.recipe} recipe, on {cell.device}"),
        ("Batch", f"{cell.batch_size:,} samples, {cell.precision}, {cell.data} data"),
        ("Repeat", f"{result.repeat} of run {result.run_id[:12]}"),
    ]
    if isinstance(outcome, Failed):
        pairs += [
            ("Outcome", f"failed: {outcome.kind.replace('_', ' ')}"),
            ("While", outcome.phase.replace("_", "-")),
            ("Exception", outcome.exception_class),
            ("Exit code", outcome.exit_code),
        ]
    if measured is not None:
        blocks, energy, accuracy = measured.blocks, measured.energy, measured.accuracy
        loss = "not finite" if measured.last_loss is None else f"{measured.last_loss:.6g}"
        kind = figures.timing_kind(cell.device.kind, blocks.total_ns)
        joules = None if energy.energy_mj is None else f"{energy.energy_mj / 1000:,.6g} J"
        problem = energy_bounds.problem(result)
        settings = ", ".join(f"{k} {v}" for k, v in sorted(measured.recipe_settings.items()))
        pairs += [
            ("Layers", measured.layers),
            ("Parameters", f"{measured.parameter_count:,}"),
            ("Last loss", loss),
            ("Warm-up", f"{blocks.warm_up_steps:,} steps"),
            ("Timed", f"{people.nanoseconds(blocks.total_ns)}, a {kind} timing"),
            ("Stopped because", _STOPPED[blocks.stop_reason]),
            ("Placement", measured.placement.reported),
            ("Peak device memory", _size(measured.peak_memory_bytes)),
            ("Peak host memory", _size(measured.host_peak_memory_bytes)),
            ("Energy", joules and f"{joules} ({energy.source}){'; ' + problem if problem else ''}"),
            ("Test accuracy", None if accuracy is None else people.percent(accuracy)),
            ("Recipe settings", settings),
        ]
    return _present_facts(*pairs)


def condition_facts(conditions: Conditions | None) -> tuple[Fact, ...]:
    if conditions is None:
        return ()
    c = conditions
    return _present_facts(
        ("Waited for quiet", c.waited_ns and people.nanoseconds(c.waited_ns)),
        ("Load average", None if c.load_average is None else f"{c.load_average:.2f}"),
        ("Processor in use", _percent(c.cpu_utilisation_percent)),
        ("GPU in use", _percent(c.gpu_utilisation_percent)),
        ("Others on the GPU", c.gpu_processes),
        ("GPU memory in use", _size(c.gpu_memory_used_bytes)),
        ("Memory available", _size(c.available_memory_bytes)),
        ("Power", {True: "battery", False: "mains", None: None}[c.on_battery]),
        ("Low-power mode", {True: "on", False: "off", None: None}[c.low_power_mode]),
        ("Thermal pressure", c.thermal_pressure),
        ("Governor", c.cpu_governor),
    )


def machine_facts(machine: Machine) -> tuple[Fact, ...]:
    cpu, system = machine.cpu, machine.os
    kinds = ("physical", "logical", "performance", "efficiency", "available")
    counts = {kind: getattr(cpu, f"{kind}_cores") for kind in kinds}
    nesting = (
        _named("virtual machine", system.virtual_machine),
        _named("container", system.container),
        system.wsl and "WSL",
        system.rosetta and "Rosetta",
    )
    return _present_facts(
        ("Model", machine.model),
        ("Processor", f"{cpu.brand} ({cpu.architecture})"),
        ("Cores", ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)),
        *((f"GPU {gpu.index}", _gpu(gpu)) for gpu in machine.gpus),
        ("Memory", _size(machine.memory_bytes)),
        ("System", system.words),
        ("Kernel", system.kernel),
        ("Page size", _size(system.page_bytes)),
        ("Nested in", ", ".join(word for word in nesting if word)),
    )


def environment_facts(environment: Environment) -> tuple[Fact, ...]:
    parts = (environment.packages, environment.libraries, environment.settings)
    facts = (Fact(name, value) for part in parts for name, value in sorted(part.items()))
    return (Fact("Python", environment.python), *facts)


_STOPPED = {
    "settled": "block times had settled",
    "budget": "the time budget was spent",
    "epochs": "the epochs were complete",
}


def _present_facts(*pairs: tuple[str, object]) -> tuple[Fact, ...]:
    return tuple(Fact(label, str(value)) for label, value in pairs if value not in (None, ""))


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.0f} %"


def _size(value: int | None) -> str | None:
    return None if value is None else people.size(value)


def _gpu(gpu: Gpu) -> str:
    details = (
        gpu.cores and f"{gpu.cores} cores",
        gpu.memory_bytes and people.size(gpu.memory_bytes),
        gpu.driver and f"driver {gpu.driver}",
        gpu.compute_capability and f"compute capability {gpu.compute_capability}",
        gpu.power_limit_watts and f"limit {gpu.power_limit_watts:g} W",
    )
    detail_words = ", ".join(str(detail) for detail in details if detail)
    return f"{gpu.name} ({detail_words})" if detail_words else gpu.name


def _named(kind: str, name: str | None) -> str | None:
    """``virtual machine (kvm)``; without the name if the system does not report it."""
    return kind if name == "unknown" else name and f"{kind} ({name})"
