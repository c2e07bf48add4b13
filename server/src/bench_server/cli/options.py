"""Options that several commands share. Imports only fast modules."""

from typing import Annotated

import typer

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="URL",
        help="Dask scheduler whose workers do the work: tls:// with host and port, or tcp:// on "
        "this machine.",
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The database. Default: the one that BENCH_SERVER_* names."),
]
