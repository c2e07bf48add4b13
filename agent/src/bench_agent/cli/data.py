"""``data fetch``, ``data list`` and ``data verify``: the real data sets on this machine."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Exit, Json, print_json, stop

if TYPE_CHECKING:
    from ..data.manifest import RealData

app = typer.Typer(help="The real data sets: bring them, list them, verify them.")

Names = Annotated[
    list[str] | None, typer.Argument(help="mnist, fashion-mnist or cifar-100; all by default.")
]


@app.command()
def fetch(names: Names = None) -> None:
    """Bring data sets from their mirrors; goes on where an interrupted download stopped."""
    from rich.console import Console

    from ..data import inventory

    if inventory.fetch_all(_chosen(names), Console(stderr=True)):
        stop(Exit.SOME_FAILED, "generated data needs no files: --data generated")


@app.command(name="list")
def list_(as_json: Json = False) -> None:
    """Show which data sets are here, where, and where they belong."""
    from ..data import inventory

    document = inventory.list_document(_chosen(None))
    if as_json:
        print_json(document)
    else:
        inventory.print_list(document)


@app.command()
def verify(names: Names = None, as_json: Json = False) -> None:
    """Check size and SHA-256 of every file, read it, and tell the digests of its arrays."""
    from ..data import inventory

    document = inventory.verify_document(_chosen(names))
    if as_json:
        print_json(document)
    else:
        inventory.print_verified(document)
    if any(item["problem"] for item in document["data_sets"]):
        raise typer.Exit(Exit.SOME_FAILED)


def _chosen(names: list[str] | None) -> "tuple[RealData, ...]":
    from ..base.errors import UsageProblem
    from ..data.manifest import MANIFEST, real_data_named

    known = ", ".join(item.name for item in MANIFEST)
    chosen: dict[str, Any] = {}
    for name in names or [item.name for item in MANIFEST]:
        found = real_data_named(name)
        if found is None:
            raise UsageProblem(f"unknown data set {name!r}; choose one of: {known}")
        chosen[name] = found
    return tuple(chosen.values())
