"""``data fetch`` and ``data list``: the real data sets on this machine."""

from typing import Annotated, Any

import typer

from bench_protocol.real_data.manifest import MANIFEST, RealData, real_data_named

from ..base.errors import UsageProblem
from ..base.names import unknown
from ..base.terminal import write_error, write_json
from ..data import inventory
from ..output.inventory import print_data_sets
from .exits import Exit, stop
from .options import Json, group

app = group("The real data sets: fetch and list them.")

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="mnist, fashion-mnist or cifar-100; all by default."),
]


@app.command()
def fetch(names: Names = None) -> None:
    """Download data sets from their mirrors. An interrupted download continues where it stopped."""
    if inventory.fetch_all(_chosen(names), write_error):
        stop(Exit.SOME_FAILED, "generated data needs no files: --data generated")


@app.command(name="list")
def list_(as_json: Json = False) -> None:
    """Show which data sets are on this machine, and the folder each belongs in."""
    document = inventory.list_document(_chosen(None))
    if as_json:
        write_json(document)
    else:
        print_data_sets(document)


def _chosen(names: list[str] | None) -> tuple[RealData, ...]:
    chosen: dict[str, Any] = {}
    for name in names or [item.name for item in MANIFEST]:
        data_set = real_data_named(name)
        if data_set is None:
            raise UsageProblem(unknown("data set", name, [item.name for item in MANIFEST]))
        chosen[name] = data_set
    return tuple(chosen.values())
