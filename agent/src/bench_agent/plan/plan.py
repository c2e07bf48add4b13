"""The plan of a run: cells, their order, estimated time, and excluded cells with the reason."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeVar, get_args

from bench_protocol.base import format as people
from bench_protocol.base.units import Wire
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import Cell, Device, DeviceKind, Recipe, why_not
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Asked
from bench_protocol.real_data.manifest import real_data_named

from .. import engines
from ..base.errors import UsageProblem
from ..base.install_hints import Pip, has_cuda_12
from ..base.messages import ABSENT, FoundDevice, Probe, Timing
from ..base.names import unknown
from ..base.precisions import ALL_PRECISIONS, too_old
from ..machine import macos
from .estimates import MeasuredTimes
from .memory_fit import FreeMemory
from .presets import ALL_DATA, ALL_RECIPES, SLOW_STEPS, Preset

Choice = TypeVar("Choice", bound=str)
NOTHING_KNOWN = MeasuredTimes()
UNKNOWN_MEMORY = FreeMemory()


@dataclass(frozen=True)
class Selection:
    """Filters of a run; an empty one selects everything."""

    workloads: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    batch_sizes: tuple[int, ...] = ()
    precisions: tuple[str, ...] = ()
    repeats: int | None = None
    budget_seconds: float | None = None
    data: str = "generated"


class PlannedCell(Wire):
    """One cell, its stopping rule, and the estimated seconds of one repeat; the form in which the
    journal stores it.

    ``python``: the interpreter of its workers; None for the agent's own. ``asked``: the server's
    ask that its result answers. ``guessed``: the estimate follows from no repeat of this framework
    on this device.
    """

    cell: Cell
    workload: Workload
    timing: Timing
    estimate_seconds: float
    python: str | None = None
    asked: Asked | None = None
    guessed: bool = False


@dataclass(frozen=True)
class Excluded:
    what: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """Cells in order, each to be run ``repeats`` times, and the accuracy passes after them.

    An accuracy pass is an additional repeat over the workload's number of epochs. ``asked``: cells
    that a server asks for, run once at the end.
    """

    preset: Preset
    cells: tuple[PlannedCell, ...]
    excluded: tuple[Excluded, ...]
    repeats: int
    accuracy_passes: tuple[PlannedCell, ...] = ()
    asked: tuple[PlannedCell, ...] = ()

    @property
    def estimate_seconds(self) -> float:
        return sum(planned.estimate_seconds for _, planned in self)

    def __len__(self) -> int:
        return self.repeats * len(self.cells) + len(self.accuracy_passes) + len(self.asked)

    def __iter__(self) -> Iterator[tuple[int, PlannedCell]]:
        """(repeat, cell): all cells once, then all again, so that drift affects all alike."""
        for repeat in range(1, self.repeats + 1):
            for planned in self.cells:
                yield repeat, planned
        for planned in self.accuracy_passes:
            yield self.repeats + 1, planned
        for planned in self.asked:
            yield 1, planned


def make_plan(
    preset: Preset,
    selection: Selection,
    probes: Mapping[str, Probe],
    catalogue: tuple[Workload, ...] = CATALOGUE,
    measured_times: MeasuredTimes = NOTHING_KNOWN,
    free_memory: FreeMemory = UNKNOWN_MEMORY,
) -> Plan:
    """Lay out the matrix.

    Raises:
        UsageProblem: a filter matches nothing, or no cell is left to run.
    """
    check_names(selection, catalogue)
    _check_devices(selection.devices, probes)
    cells: list[PlannedCell] = []
    excluded: list[Excluded] = []
    source = preset.published
    for framework in selection.frameworks or (source.frameworks if source else engines.names()):
        probe = probes[framework]
        if not probe.devices:
            reason = _why_unused(framework, probe, asked_for=framework in selection.frameworks)
            excluded.append(Excluded(framework, reason))
            continue
        chosen, others = _chosen_devices(probe.devices, selection.devices)
        if not chosen:
            seen = ", ".join(dict.fromkeys(str(device.device) for device in probe.devices))
            reason = f"sees no {' or '.join(selection.devices)} here, only {seen}"
            excluded.append(Excluded(framework, reason))
        if others and not selection.devices:
            names = ", ".join(f"{device.kind}:{device.index}" for device in others)
            kind = others[0].kind
            reason = (
                f"one GPU is planned; --device {kind}:all plans all, --device {kind}:1 that one"
            )
            excluded.append(Excluded(f"{framework} on {names}", reason))
        for device in chosen:
            for workload in _chosen_workloads(preset, selection, catalogue):
                for planned in _cells(preset, selection, framework, device, workload, free_memory):
                    if isinstance(planned, Excluded):
                        excluded.append(planned)
                    else:
                        cells.append(planned)
    cells = _share_budget(cells, preset, selection, measured_times)
    if preset.longest_repeat_seconds and not selection.workloads:
        cells, too_long = _in_time(cells, preset, preset.longest_repeat_seconds)
        excluded += too_long
    # Cells of one workload are adjacent, so that its figures can be compared.
    order = [workload.name for workload in catalogue]
    cells.sort(key=lambda p: (order.index(p.cell.workload), p.cell.framework, str(p.cell.device)))
    repeats = selection.repeats or preset.repeats
    passes = _accuracy_passes(cells, measured_times) if preset.accuracy_pass else ()
    return Plan(preset, tuple(cells), tuple(excluded), repeats, passes)


def check_names(selection: Selection, catalogue: tuple[Workload, ...] = CATALOGUE) -> None:
    """Check the names in the filters, before frameworks are probed.

    Raises:
        UsageProblem: a name is unknown; the message lists the known ones.
    """
    try:
        for name in selection.frameworks:
            engines.engine_named(name)
    except LookupError as error:
        raise UsageProblem(str(error.args[0])) from error
    _checked("workload", selection.workloads, tuple(workload.name for workload in catalogue))
    _checked("recipe", selection.recipes, ALL_RECIPES)
    _checked("precision", selection.precisions, ALL_PRECISIONS)
    _checked("data", (selection.data,), ALL_DATA)


def _why_unused(framework: str, probe: Probe, *, asked_for: bool) -> str:
    """Why a framework sees no device; for one that was asked for, the command that installs it."""
    command = Pip().install_framework(framework, cuda_12=has_cuda_12())
    if asked_for and probe.problem == ABSENT.problem and command:
        return f"not installed: {command}"
    return probe.problem or "sees no device"


def _check_devices(wanted: tuple[str, ...], probes: Mapping[str, Probe]) -> None:
    here = {
        name for probe in probes.values() for device in probe.devices for name in _names(device)
    }
    if not here:
        return  # what remains of the plan says why
    for name in wanted:
        if name in here:
            continue
        kind, _, index = name.partition(":")
        if not index and (kind == "gpu" or kind in get_args(DeviceKind)):
            seen = ", ".join(sorted(name for name in here if ":" not in name)) or "no device"
            if kind != "gpu" or seen == "cpu":
                raise UsageProblem(
                    f"no framework sees {kind} on this machine; seen: {seen}; bench-agent devices "
                    "says what each framework sees, bench-agent doctor why"
                )
        shown = sorted(name for name in here if not name.endswith((":0", ":all")))
        several = any(":" in name for name in shown)
        every = "; KIND:all means all devices of a kind" if several else ""
        raise UsageProblem(f"{unknown('device', name, shown)}{every}")


def _checked(what: str, wanted: tuple[str, ...], choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    for name in wanted:
        if name not in choices:
            raise UsageProblem(unknown(what, name, choices))
    return tuple(choice for choice in choices if choice in wanted)


def _cells(
    preset: Preset,
    selection: Selection,
    framework: str,
    device: FoundDevice,
    workload: Workload,
    free_memory: FreeMemory,
) -> Iterator[PlannedCell | Excluded]:
    engine = engines.engine_named(framework)
    precisions = _checked("precision", selection.precisions, ALL_PRECISIONS) or preset.precisions
    data = _checked("data", (selection.data,), ALL_DATA)[0]
    points = list(_points(preset, selection, workload))
    if preset.published and not points:
        what = f"{workload.name} {framework} {device.kind}"
        yield Excluded(what, f"{preset.name} has no such cell; it has {preset.published}")
    for (recipe, batch_size), precision in product(points, precisions):
        cell = Cell(
            workload=workload.name,
            workload_digest=workload.digest,
            framework=framework,
            device=Device(kind=device.kind, index=device.index),
            recipe=recipe,
            batch_size=batch_size,
            precision=precision,
            data=data,
        )
        reason = (
            why_not(workload, batch_size)
            or _why_no_data(workload, data)
            or engine.why_not(device.kind, cell.recipe, cell.precision)
            or too_old(device, cell.precision, macos.version)
            or free_memory.why_not(cell, workload)
        )
        if reason:
            yield Excluded(str(cell), reason)
        else:
            timing = _timing(preset, workload, device.kind)
            yield PlannedCell(
                cell=cell,
                workload=workload,
                timing=timing,
                estimate_seconds=0.0,
                python=device.python,
            )


def _why_no_data(workload: Workload, kind: str) -> str | None:
    name = workload.data_set.name
    if kind == "real" and real_data_named(name) is None:
        return f"its data set, {name}, is always generated"
    return None


def _points(
    preset: Preset, selection: Selection, workload: Workload
) -> Iterator[tuple[Recipe, int]]:
    recipes = _checked("recipe", selection.recipes, ALL_RECIPES)
    if preset.published:
        for name, recipe, batch_size in preset.published.points:
            right_recipe = not recipes or recipe in recipes
            right_batch = not selection.batch_sizes or batch_size in selection.batch_sizes
            if name == workload.name and right_recipe and right_batch:
                yield recipe, batch_size
        return
    batches = selection.batch_sizes or (
        workload.batch_sizes or (workload.batch_size,)
        if preset.batches == "all"
        else (workload.batch_size,)
    )
    yield from product(recipes or preset.recipes, batches)


def _accuracy_passes(
    cells: list[PlannedCell], measured_times: MeasuredTimes
) -> tuple[PlannedCell, ...]:
    """One cell per workload, framework and device: its last recipe, default batch size, float32.
    None with a time budget: accuracy is defined after whole epochs."""
    chosen: dict[tuple[str, str, Device], PlannedCell] = {}
    for planned in cells:
        cell, workload = planned.cell, planned.workload
        default = (cell.batch_size, cell.precision) == (workload.batch_size, "float32")
        if default and planned.timing.epochs:
            # Accuracy bands hold for exactly this number of epochs.
            whole = {"epochs": workload.epochs, "least_seconds": 0.0}
            timing = planned.timing.model_copy(update=whole)
            estimate = measured_times.repeat_seconds(cell, workload, timing)
            key = (cell.workload, cell.framework, cell.device)
            chosen[key] = planned.model_copy(
                update={"timing": timing, "estimate_seconds": estimate}
            )
    return tuple(chosen.values())


def _timing(preset: Preset, workload: Workload, device: DeviceKind) -> Timing:
    epochs = {"epochs": workload.epochs} if preset.published else {}
    least = preset.least_seconds.get(device, 0.0)
    budget = max(preset.timing.budget_seconds, least)
    seconds = {"least_seconds": least, "budget_seconds": budget}
    return preset.timing.model_copy(update=epochs | seconds)


def _share_budget(
    cells: list[PlannedCell], preset: Preset, selection: Selection, measured_times: MeasuredTimes
) -> list[PlannedCell]:
    budget = selection.budget_seconds
    if budget is None and preset.total_seconds is not None and cells:
        taken = sum(
            measured_times.overhead_seconds(planned.cell, planned.workload)
            + planned.timing.least_seconds
            for planned in cells
        )
        share = (preset.total_seconds - taken) / len(cells)
        budget = min(preset.longest_seconds, max(preset.shortest_seconds, share))
    shared = []
    for planned in cells:
        timing = planned.timing
        if budget is not None:
            # A user's own budget is the longest that may be timed.
            least = timing.least_seconds if selection.budget_seconds is None else 0.0
            wanted = {"budget_seconds": max(budget, least), "epochs": None}
            timing = timing.model_copy(update=wanted)
        estimate = measured_times.repeat_seconds(planned.cell, planned.workload, timing)
        guessed = not measured_times.has(planned.cell.framework, planned.cell.device)
        found = {"timing": timing, "estimate_seconds": estimate, "guessed": guessed}
        shared.append(planned.model_copy(update=found))
    return shared


def _in_time(
    cells: list[PlannedCell], preset: Preset, longest_seconds: float
) -> tuple[list[PlannedCell], list[Excluded]]:
    """The cells whose repeats are short enough, and the others."""
    kept: list[PlannedCell] = []
    left: list[Excluded] = []
    for planned in cells:
        cell, seconds = planned.cell, planned.estimate_seconds
        reason = SLOW_STEPS.get((cell.workload, cell.framework, cell.device.kind))
        if seconds > longest_seconds:
            reason = f"a repeat takes about {people.rough(seconds)}"
        if reason is None:
            kept.append(planned)
        else:
            advice = f"too long for {preset.name}; --workload {cell.workload} runs it"
            left.append(Excluded(str(cell), f"{reason}, {advice}"))
    return kept, left


def _chosen_devices(
    devices: tuple[FoundDevice, ...], wanted: tuple[str, ...]
) -> tuple[list[FoundDevice], list[FoundDevice]]:
    """The devices to plan, and the others. By default the first of each kind is planned."""
    names = set(wanted)
    chosen = [d for d in devices if (_names(d) & names if names else d.index == 0)]
    return chosen, [device for device in devices if device not in chosen]


def _names(device: FoundDevice) -> set[str]:
    """The names of a device in filters: kind and index, all of its kind, its kind for the first."""
    kind = device.kind
    return {f"{kind}:{device.index}", f"{kind}:all", *([kind] if device.index == 0 else ())}


def _chosen_workloads(
    preset: Preset, selection: Selection, catalogue: tuple[Workload, ...]
) -> Iterator[Workload]:
    published = {name for name, *_ in preset.published.points} if preset.published else None
    names = selection.workloads or preset.workloads or published
    for workload in catalogue:
        if names is None or workload.name in names:
            yield workload
