"""``bench-server``: the list of commands, and ``serve``.

It imports little, so that ``serve`` prints immediately that it starts; on a busy machine the
imports of a command take seconds.
"""

import gc
import sys
from typing import Annotated

import typer

from bench_protocol.base.lazy_commands import LazyCommands

from .. import __version__
from ..memory import limit_arenas
from .options import DatabaseUrl

# Name: the function or group in this folder, the line that --help shows.
COMMANDS = {
    "serve": ("main:serve", "Serve the API and the pages until interrupted."),
    "migrate": ("data:migrate", "Bring the database to this program's version."),
    "reindex": ("project:reindex", "Rebuild the boards from the log, from its first entry."),
    "project": (
        "project:project",
        "Apply new log entries to the boards, for servers with BENCH_SERVER_PROJECT=no.",
    ),
    "recompute": (
        "recompute:recompute",
        "Recompute the readings of results on one core, at the lowest priority.",
    ),
    "cosign": (
        "cosign:cosign",
        "Ask witnesses for today's cosignatures of the log, as serve does once a day.",
    ),
    "import-published": (
        "data:import_published",
        "Import the figures of other sources that come with this program, at trust level 0.",
    ),
    "export": ("data:export", "Write every result to a file, or today's dump into a folder."),
    "backup": (
        "data:backup",
        "Write a consistent copy of the database to a file, or today's backup into a folder.",
    ),
    "restore": (
        "data:restore",
        "Copy a backup into an empty, migrated database, SQLite or PostgreSQL.",
    ),
    "create-invite": ("operator:create_invite", "Print an invitation code for one key."),
    "state-break": (
        "operator:state_break",
        "Sign a statement that the newest entries of a restored log are lost.",
    ),
    "verify-log": (
        "verify_log:verify_log",
        "Rebuild the log's tree and the leaderboard from a server's public answers, and compare.",
    ),
    "keys": ("operator:keys", "Keys: list, approve, revoke; archive the server's own."),
    "owners": ("operator:owners", "Owners: list, assign keys, confirm, doubt."),
    "results": ("operator:results", "Results: flag, quarantine, restore, withdraw."),
}


class Commands(LazyCommands):
    """The commands of :data:`COMMANDS`."""

    package = __package__
    table = COMMANDS

    def complain(self, words: str) -> None:
        print(f"bench-server: {words}", file=sys.stderr)


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
    bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Show the version.")
]


@main.callback()
def program(version: Version = False) -> None:
    """Trainmark's server. Its settings are environment variables: BENCH_SERVER_*."""


def serve(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, metavar="N", help="Port; 0 takes a free one.")
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Serve the API and the pages until interrupted."""
    print("Starting Trainmark's server ...", flush=True)
    # A start makes hardly any garbage, and collections take a sixth of its time.
    gc.disable()
    limit_arenas()
    try:
        from .start import start

        start(host, port, database_url)
    finally:
        gc.enable()
