"""``bench-agent``: the commands, gathered from ``commands/``."""

import os
import sys
from typing import Annotated, NoReturn

import typer

from .. import __version__
from ..base.errors import DataProblem, HomeProblem, UsageProblem
from . import ab, conformance, data, owning
from . import doctor as looking
from . import report as reporting
from . import run as measuring
from . import submit as sending
from . import verify as verifying
from .options import Exit

app = typer.Typer(
    name="bench-agent",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # lines of a paragraph belong together
    pretty_exceptions_enable=False,
)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"bench-agent {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=_say_version, help="Show the version."),
]


@app.callback()
def program(version: Version = False) -> None:
    """Measure how fast this machine trains neural networks; sign and share the results."""


app.command()(looking.devices)
app.command()(looking.doctor)
app.command()(measuring.plan)
app.command()(measuring.run)
app.command()(ab.ab)
app.command()(reporting.report)
app.command()(conformance.conformance)
app.command()(sending.submit)
app.command()(sending.status)
app.command()(sending.enroll)
app.command()(verifying.verify)
app.add_typer(owning.keys, name="keys")
app.add_typer(owning.results, name="results")
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line; problems a person can mend end in one line, not in a traceback."""
    try:
        app()
    except (UsageProblem, HomeProblem, DataProblem) as problem:
        _leave(Exit.WRONG_USAGE, str(problem))
    except KeyboardInterrupt:
        _leave(
            Exit.INTERRUPTED,
            "interrupted; finished results are in the outbox: bench-agent run --resume goes on",
        )


def _leave(code: Exit, message: str) -> NoReturn:
    sys.stderr.write(message + os.linesep)
    sys.exit(code)
