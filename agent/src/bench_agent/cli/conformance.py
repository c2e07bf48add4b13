"""``conformance``: check that every framework trains the same on this machine."""

import secrets

import typer

from ..base.terminal import write, write_json
from ..plan.plan import Selection, check_names, make_plan
from ..plan.presets import preset_of
from ..run.conformance import check, document, line, summary
from .exits import Exit, stop
from .options import Json, choosing_untimed_cells
from .setup import open_home, probe_frameworks


@choosing_untimed_cells
def conformance(selection: Selection, as_json: Json = False) -> None:
    """Check that every framework trains the same: its readings against a float64 computation.

    Weights and data follow from a fresh nonce.
    """
    check_names(selection)
    probes = probe_frameworks(selection.frameworks)
    made = make_plan(preset_of(None), selection, probes)
    if not made.cells:
        stop(Exit.WRONG_USAGE, "nothing to check; bench-agent plan shows what is left out and why")
    checked = []
    nonce = secrets.token_hex(32)
    for cell in check(made, open_home().logs, nonce):
        checked.append(cell)
        if not as_json:
            write(line(cell))
    if as_json:
        write_json(document(checked, made, nonce))
    else:
        write(summary(checked, made))
    if any(cell.failed for cell in checked):
        raise typer.Exit(Exit.SOME_FAILED)
