"""Options that several commands share. Imports only fast modules."""

from typing import Annotated

import typer

DatabaseUrl = Annotated[
    str | None, typer.Option(help="Database address, else BENCH_SERVER_DATABASE_URL.")
]
