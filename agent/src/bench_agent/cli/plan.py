"""``plan``: show what a run measures, how long it takes, and what is left out; for other commands,
make that plan."""

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from bench_protocol.base.format import rough

from .. import data
from ..base.home import find_home
from ..base.messages import Probe
from ..base.terminal import write, write_json
from ..machine import read_facts
from ..output.console import WARNING, complain, console, say
from ..output.plan_table import NOTHING, left_out, long_warning, plan_document, print_plan
from ..plan import estimates
from ..plan.memory_fit import free_memory_of
from ..plan.plan import Plan, Selection, check_names, make_plan
from ..plan.presets import Preset, preset_of
from ..run import calibration
from .exits import Exit, stop
from .options import Json, Like, PresetName, choosing_cells
from .setup import ask, open_home, recall_frameworks

LayOut = Callable[[Selection], Plan]
Calibrate = Annotated[
    bool,
    typer.Option(
        "--calibrate",
        help="Measure each framework and device that was not measured here yet for some seconds, "
        "for a better estimate.",
    ),
]


@choosing_cells
def plan(
    selection: Selection,
    preset: PresetName = None,
    like: Like = None,
    calibrate: Calibrate = False,
    as_json: Json = False,
) -> None:
    """Show what a run measures, how long it takes, and what is left out and why. Only results that
    are measured with --server can be ranked."""
    made, _ = planned(preset, like, selection, recall_frameworks, lambda made: calibrate)
    if as_json:
        write_json(plan_document(made))
    else:
        print_plan(made, shown := console())
        if made.cells:
            say(shown, f"Next:\n  {find_home().command('run --server URL')}")


def planned(
    preset: str | None,
    like: str | None,
    selection: Selection,
    probes: Callable[[tuple[str, ...]], Mapping[str, Probe]],
    calibrates: Callable[[Plan], bool] = calibration.is_worth_it,
) -> tuple[Plan, LayOut]:
    """The plan, and what lays out other selections on the same machine. ``probes``: asks the
    frameworks. ``calibrates``: whether to measure first what a plan's estimate only assumes."""
    chosen = preset_of(preset, like)
    check_names(selection)
    return lay_out_plan(chosen, selection, probes(selection.frameworks), calibrates)


def lay_out_plan(
    chosen: Preset,
    selection: Selection,
    probes: Mapping[str, Probe],
    calibrates: Callable[[Plan], bool] = calibration.is_worth_it,
) -> tuple[Plan, LayOut]:
    """The plan of a preset, and what lays out other selections, as :func:`planned`."""
    home = open_home()
    free_memory = free_memory_of(read_facts())

    def lay_out(one: Selection) -> Plan:
        times = estimates.load(home.measured_times)
        return make_plan(chosen, one, probes, measured_times=times, free_memory=free_memory)

    made = lay_out(selection)
    if selection.data == "real":
        data.require({planned.workload.data_set.name: None for planned in made.cells})
    if calibrates(made) and (unknown := calibration.unknown(made, home)):
        calibration.calibrate(unknown, home, lambda line: write(line, err=True))
        made = lay_out(selection)
    return made, lay_out


def check_plan(made: Plan, yes: bool) -> None:
    """Stop where nothing is planned; print the plan's warnings; ask before a long one."""
    if not made.cells:
        stop(Exit.WRONG_USAGE, "\n".join((*left_out(made), NOTHING)))
    if warning := long_warning(made):
        complain(warning, WARNING)
        ask(f"This takes about {rough(made.estimate_seconds)}. Go on?", yes)
