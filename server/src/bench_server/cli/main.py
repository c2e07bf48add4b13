"""``bench-server``: the command line.

It imports little, so that ``serve`` prints immediately that it starts; on a busy machine the
imports of a command take seconds.
"""

import gc
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bench_protocol.base.command_errors import OneLineErrors
from bench_protocol.base.command_help import plain, plain_parameters

from .. import __version__
from ..memory import limit_arenas
from .options import DatabaseUrl


class Commands(OneLineErrors, TyperGroup):
    """``serve``, and the commands of :mod:`.commands`, imported when one is called or all are
    listed."""

    def complain(self, words: str) -> None:
        print(f"bench-server: {words}", file=sys.stderr)

    def get_params(self, ctx: Any) -> list[Any]:
        return plain_parameters(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        self._import_others()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self._import_others()
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            plain(command)
        return command

    def _import_others(self) -> None:
        from .commands import others

        group: Any = typer.main.get_command(others)
        self.commands = {**self.commands, **group.commands}


main = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # join the lines of a paragraph
    pretty_exceptions_enable=False,
)


def _say_version(requested: bool) -> None:
    if requested:
        typer.echo(f"bench-server {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=_say_version, help="Show the version."),
]


@main.callback()
def program(version: Version = False) -> None:
    """Trainmark's server. Its settings are environment variables: BENCH_SERVER_*."""


@main.command()
def serve(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, metavar="N", help="Port; 0 takes a free one."),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Serve the API and the pages until interrupted."""
    print("Starting Trainmark's server ...", flush=True)
    # Off until it serves: a start makes hardly any garbage, and collections take a sixth of the
    # time.
    gc.disable()
    limit_arenas()
    try:
        from .start import start

        start(host, port, database_url)
    finally:
        gc.enable()
