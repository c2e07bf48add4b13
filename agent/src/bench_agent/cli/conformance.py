"""``conformance``: does every framework train the same here."""

from typing import TYPE_CHECKING

import typer

from .options import Exit, Json, choosing_cells, open_home, print_json, probe_frameworks, stop

if TYPE_CHECKING:
    from ..plan.plan import Selection


@choosing_cells
def conformance(selection: "Selection", as_json: Json = False) -> None:
    """Check that every framework trains the same: each step's loss against the reference."""
    from ..plan.plan import check_names, make_plan
    from ..plan.presets import preset_named
    from ..run import conformance as conformance_run

    check_names(selection)
    probes = probe_frameworks(selection.frameworks)
    made = make_plan(preset_named("quick"), selection, probes)
    if not made.cells:
        stop(Exit.WRONG_USAGE, "nothing to check; bench-agent plan shows what is left out and why")
    checked = []
    for one in conformance_run.check(made, open_home().logs):
        checked.append(one)
        if not as_json:
            typer.echo(conformance_run.line(one))
    if as_json:
        print_json(conformance_run.document(checked, made))
    else:
        typer.echo(conformance_run.summary(checked, made))
    if any(one.failed for one in checked):
        raise typer.Exit(Exit.SOME_FAILED)
