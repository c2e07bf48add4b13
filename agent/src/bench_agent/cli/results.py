"""``results``: list, export, hide, show and withdraw your results on a server."""

import json
from pathlib import Path
from typing import Annotated

import typer

from bench_protocol.base import format as people
from bench_protocol.payload.acts import OwnAct

from ..base.terminal import write, write_json
from ..output.console import console, show_table
from ..output.documents import OWN_HEADINGS, own_row
from ..remote.connection import reading
from ..remote.outbox import Outbox
from .keys import Yes
from .options import Json, NamedServer, group
from .setup import ask, exchange, open_client, open_home

app = group("Your results on a server: list, export, hide, show, withdraw.")
ResultId = Annotated[str, typer.Argument(metavar="RESULT_ID", help="The result's id.")]


@app.command("list")
def list_results(server: NamedServer = None, as_json: Json = False) -> None:
    """List the results that this machine's key sent, the hidden ones too."""
    with exchange(open_client(server, open_home())) as client, reading(client.server):
        rows = client.act("list")["results"]
        cells = [own_row(row) for row in rows]
    if as_json:
        write_json(rows)
    elif rows:
        show_table(console(), OWN_HEADINGS, cells, right=("samples/s",))
    else:
        write("no result of this machine's key is there")


@app.command()
def export(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File for the results, a JSON line each: envelope and receipt."
        ),
    ],
    server: NamedServer = None,
) -> None:
    """Write every result that this machine's key sent into a file."""
    with exchange(open_client(server, open_home())) as client, reading(client.server):
        lines = [json.dumps(row) + "\n" for row in client.act("export")["results"]]
    file.write_text("".join(lines))
    write(f"{people.plural(len(lines), 'result')} in {file}")


@app.command()
def hide(result: ResultId, server: NamedServer = None) -> None:
    """Hide a result: no page shows it and no figure counts it, until it is shown again."""
    _change(server, "hide", result)


@app.command("show")
def show_result(result: ResultId, server: NamedServer = None) -> None:
    """Show a hidden result again."""
    _change(server, "show", result)


@app.command()
def withdraw(result: ResultId, server: NamedServer = None, yes: Yes = False) -> None:
    """Erase a result: its payload, its link to the key, and the salt. This cannot be undone."""
    ask(f"Erase result {result} for good?", yes)
    # First: whatever becomes of the answer, it is never sent again.
    Outbox(open_home().outbox).mark_withdrawn(result)
    _change(server, "withdraw", result)


def _change(server: str | None, kind: OwnAct, result: str) -> None:
    with exchange(open_client(server, open_home())) as client:
        client.act(kind, result=result)
    write(f"{result}: {kind} done")
