"""``devices`` and ``doctor``: show this machine, what runs on it, and how to fix the rest."""

from pathlib import Path
from typing import Annotated

import typer

from ..base.home import find_home
from ..base.terminal import write, write_json
from ..doctor.bundle import Bundle, make_bundle, summary
from ..doctor.finding import document, exit_code, print_findings
from ..doctor.table import Surroundings, examine
from ..machine import read_machine
from ..output.console import SOFT, complain, console
from ..output.inventory import devices_document, print_devices
from ..run.probe import in_use, probe_each
from .exits import Exit, stop
from .options import Json, option
from .setup import open_home, usable_interpreters


def devices(as_json: Json = False) -> None:
    """Show this machine and the devices that each framework sees."""
    home = open_home()
    answers = in_use(probe_each(home.logs, usable_interpreters(home)))
    found = devices_document(read_machine(home), answers)
    if as_json:
        write_json(found)
    else:
        print_devices(found)


def doctor(
    only: Annotated[list[str], option("--only", "CHECK", "Only this check. Repeatable.")] = [],
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also test each framework on each device: does its synchronisation wait, does it "
            "compute in its precisions, do batches arrive. Some seconds each.",
        ),
    ] = False,
    bundle: Annotated[
        Path | None,
        option("--bundle", "FILE", "Write a report without private values, for an issue."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also list the checks that passed or do not apply here.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what runs here, what does not and why, and the command that fixes it."""
    surroundings = Surroundings(find_home(), deep=deep, say=lambda line: complain(line, SOFT))
    findings = list(examine(surroundings, tuple(only)))
    if as_json:
        write_json(document(findings))
    else:
        print_findings(findings, console(), every or bool(only))
    if bundle:
        _write(make_bundle(surroundings, findings), bundle)
    raise typer.Exit(exit_code(findings))


def _write(bundle: Bundle, path: Path) -> None:
    try:
        path.write_text(bundle.text, encoding="utf-8")
    except OSError as error:
        stop(Exit.WRONG_USAGE, f"cannot write {path}: {error.strerror}; name another file")
    write(summary(bundle, path), err=True)
