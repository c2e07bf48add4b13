"""Checks of the machine: the device of the cell trained it, on samples that exist, with an energy
that is possible, and its document does not contradict itself.

Nothing here judges a machine by what is usual: virtual machines, containers, WSL, emulators and
Linux on a Mac are honest, and their documents say what they are. What a document does not
contradict is the sender's word.
"""

import re
from collections.abc import Callable

from bench_protocol.payload import energy_bounds
from bench_protocol.payload.hardware import ARM, X86, X86_NAMES, clean, emulated
from bench_protocol.payload.machine import Machine

from .case import Case
from .verdicts import Finding

X86_SETS = re.compile(r"(?:sse|avx|amx_|fma$|f16c$)", re.IGNORECASE)
# Without "sme": AMD's processors have that flag too, for encrypted memory.
ARM_SETS = re.compile(r"(?:neon|asimd|sve|sme2|i8mm$|dotprod$)", re.IGNORECASE)
AVX_512 = re.compile(r"avx512", re.IGNORECASE)
# The number of cores that AMD puts into the names of its processors.
CORES_IN_NAME = re.compile(r"\b(\d{1,3})-Cores?\b", re.IGNORECASE)


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
    """Energy beyond the bounds is in no figure, and the speed counts."""
    energy = case.measured.energy
    watts = energy_bounds.watts(energy)
    if watts is None:
        sentence = f"it has no energy: {energy.reason or 'it gives no reason'}"
        return Finding(True, sentence, {}, checked=False)
    problem = energy_bounds.problem(case.result)
    sentence = problem or f"its mean power, {watts:,.4g} W, is possible"
    return Finding(problem is None, sentence, {"mean_watts": watts})


def consistent(case: Case) -> Finding:
    """The document about the machine does not contradict itself."""
    machine = case.result.machine
    wrong = [words for words, contradicts in RULES.items() if contradicts(machine)]
    sentence = f"its machine contradicts itself: {'; '.join(wrong)}"
    return Finding(
        not wrong, sentence if wrong else "nothing in its machine contradicts itself", {}
    )


def _runs(machine: Machine, architecture: re.Pattern[str]) -> bool:
    return architecture.fullmatch(machine.cpu.architecture) is not None


def _has(machine: Machine, sets: re.Pattern[str]) -> bool:
    return any(sets.match(name) for name in machine.cpu.instruction_sets)


def _gpu(machine: Machine, kind: str, maker: str = "") -> bool:
    return any(g.kind == kind and clean(g.name).startswith(maker) for g in machine.gpus)


def _more(machine: Machine, few: int | None, many: int | None) -> bool:
    """In a container the counts may be of the host or of the container (lxcfs)."""
    known = few is not None and many is not None and machine.os.container is None
    return known and (few or 0) > (many or 0)


def _more_than_named(machine: Machine) -> bool:
    cpu, named = machine.cpu, CORES_IN_NAME.search(machine.cpu.brand)
    if named is None or cpu.sockets is None or machine.os.virtual_machine:
        return False
    return _more(machine, cpu.physical_cores, int(named[1]) * cpu.sockets)


# Each key names a contradiction and ends the sentence of the verdict; its rule finds it.
RULES: dict[str, Callable[[Machine], bool]] = {
    "no processor of Apple has AVX-512, and Rosetta does not translate it": lambda m: (
        "apple" in clean(m.cpu.brand).lower() and _has(m, AVX_512)
    ),
    # Rosetta and QEMU list those of the processor beside those that are translated, or alone.
    "the instruction sets are of x86-64, the architecture is Arm": lambda m: (
        _runs(m, ARM) and _has(m, X86_SETS) and not emulated(m.cpu, m.os)
    ),
    "the instruction sets are of Arm, the architecture is x86-64": lambda m: (
        _runs(m, X86) and _has(m, ARM_SETS) and not emulated(m.cpu, m.os)
    ),
    "Metal is a part of macOS alone": lambda m: _gpu(m, "metal") and m.os.name != "macos",
    "CUDA has had no version for macOS since 10.2 (2019)": lambda m: (
        _gpu(m, "cuda") and m.os.name == "macos"
    ),
    "a GPU of Apple has no CUDA": lambda m: _gpu(m, "cuda", "Apple"),
    "a GPU of Apple is a part of a chip of Apple": lambda m: (
        _gpu(m, "metal", "Apple") and X86_NAMES.match(clean(m.cpu.brand)) is not None
    ),
    "two GPUs have one index": lambda m: (
        len({(gpu.kind, gpu.index) for gpu in m.gpus}) < len(m.gpus)
    ),
    "WSL is a Linux": lambda m: m.os.wsl and m.os.name != "linux",
    "Rosetta as a property of the system is macOS'": lambda m: (
        m.os.rosetta and m.os.name != "macos"
    ),
    "it has more physical than logical cores": lambda m: _more(
        m, m.cpu.physical_cores, m.cpu.logical_cores
    ),
    "the process may use more logical cores than there are": lambda m: _more(
        m, m.cpu.available_cores, m.cpu.logical_cores
    ),
    "it has more performance and efficiency cores than physical cores": lambda m: _more(
        m, (m.cpu.performance_cores or 0) + (m.cpu.efficiency_cores or 0), m.cpu.physical_cores
    ),
    "it has more sockets than physical cores": lambda m: _more(
        m, m.cpu.sockets, m.cpu.physical_cores
    ),
    "it has more cores than its sockets of the named processor": _more_than_named,
}
