"""Options that several commands share. Imports only fast modules."""

from typing import Annotated

import typer

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Work on a Dask scheduler's workers: tls://HOST:PORT, or tcp:// on this machine.",
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The database. Default: BENCH_SERVER_DATABASE_URL."),
]
