"""Options that several commands share. Imports only fast modules."""

from typing import Annotated

import typer

DatabaseUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The database. Default: the one that BENCH_SERVER_* names."),
]
