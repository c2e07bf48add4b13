"""``environments``: the interpreters whose frameworks this machine measures."""

from pathlib import Path
from typing import Annotated

import typer

from ..base.terminal import write, write_json
from ..output.documents import Document
from ..output.inventory import environments_document, print_environments
from ..run import interpreters
from ..run.probe import in_use, probe_each
from .exits import Exit
from .options import Json, group
from .setup import open_home

app = group("Interpreters whose frameworks are measured: list, add, remove and check them.")

Place = Annotated[
    Path,
    typer.Argument(
        metavar="PATH", help="A Python interpreter, or the folder of a virtual environment."
    ),
]


@app.command(name="list")
def list_(as_json: Json = False) -> None:
    """Show each interpreter and the frameworks installed there; the first one is the agent's."""
    _show(environments_document(interpreters.every(open_home())), as_json)


@app.command()
def add(place: Place) -> None:
    """Add an interpreter: it runs the frameworks and devices that those before it lack."""
    home = open_home()
    added = interpreters.add(home, place)
    frameworks = ", ".join(added.frameworks) or "no framework"
    write(f"added: {added.place} has {frameworks}")


@app.command()
def remove(place: Place) -> None:
    """Remove an added interpreter from the list; nothing is uninstalled."""
    interpreters.remove(open_home(), place)
    write(f"removed: {place}")


@app.command()
def check(as_json: Json = False) -> None:
    """Show which framework starts where on which device, and how to fix what does not work."""
    home = open_home()
    every = interpreters.every(home, packages=True)
    answers = in_use(probe_each(home.logs, every))
    document = environments_document(every, answers)
    _show(document, as_json)
    faults = ("problem", "problems", "shared")
    if any(item[fault] for item in document["environments"] for fault in faults):
        raise typer.Exit(Exit.SOME_FAILED)


def _show(document: Document, as_json: bool) -> None:
    if as_json:
        write_json(document)
    else:
        print_environments(document)
