"""``keys`` and ``results``: this machine's key, and what was sent with it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Exit, Json, Server, ask, open_client, open_home, print_json, stop
from .submit import talking

if TYPE_CHECKING:
    from bench_protocol.acts import OwnAct

keys = typer.Typer(help="This machine's key: show, rotate, revoke.", no_args_is_help=True)
results = typer.Typer(
    help="Your own results on a server: list, export, hide, show, withdraw, pseudonymise.",
    no_args_is_help=True,
)
ResultId = Annotated[str, typer.Argument(help="The result's id.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@keys.command("show")
def show_key(as_json: Json = False) -> None:
    """Show the key's id and where the key is."""
    from bench_protocol.keys import key_id

    from ..base.keys import load_or_create_key

    home = open_home()
    found = {"key_id": key_id(load_or_create_key(home).public_key()), "file": str(home.key)}
    if as_json:
        print_json(found)
    else:
        typer.echo(f"{found['key_id']}\n{found['file']}")


@keys.command()
def rotate(
    servers: Annotated[list[str], typer.Option("--server", help="Repeatable.")] = [],
    leave: Annotated[
        list[str],
        typer.Option("--leave", help="A server that is gone: its results keep the old key."),
    ] = [],
) -> None:
    """Make a new key and put it into the old one's place on every server that is named.

    The old key is gone then, so every server that this machine has met is to be named. Results
    that wait in the outbox are signed by the old key: submit them first.
    """
    from bench_protocol.keys import key_id

    from ..base.keys import next_key, take_next_key
    from ..remote.client import Client
    from ..remote.log_witness import known_servers
    from ..remote.outbox import Outbox

    home = open_home()
    if not servers:
        stop(Exit.WRONG_USAGE, "name every server that knows the key: --server URL, repeatable")
    named = {server.rstrip("/") for server in (*servers, *leave)}
    if forgotten := sorted(set(known_servers(home)) - named):
        more = " ".join(f"--server {server}" for server in forgotten)
        stop(
            Exit.WRONG_USAGE,
            "what the old key sent to a server that is not named could never be taken back: add "
            f"{more}, or --leave URL for one that is gone",
        )
    if any(Outbox(home.outbox).pending()):
        stop(
            Exit.WRONG_USAGE,
            "results of the old key wait: bench-agent submit first, or where the key is revoked: "
            "bench-agent keys renew",
        )
    new = next_key(home)
    for server in servers:
        client: Client = open_client(server, home)
        with talking(client):
            client.rotate(new)
        typer.echo(f"{client.server} knows the new key")
    take_next_key(home)
    typer.echo(f"key {key_id(new.public_key())} is this machine's key now")


@keys.command()
def renew(yes: Yes = False) -> None:
    """Begin with a new key where the old one is revoked or lost its server.

    The old key is kept beside the new one, and results that wait, which it signed, are put to the
    refused ones: no server takes them any more.
    """
    from bench_protocol.keys import key_id

    from ..base.keys import load_or_create_key, put_key_away
    from ..remote.outbox import Outbox

    home = open_home()
    outbox = Outbox(home.outbox)
    waiting = list(outbox.pending())
    ask(f"Put the old key and {len(waiting)} waiting results away?", yes)
    try:
        away = put_key_away(home)
    except FileNotFoundError:
        stop(Exit.WRONG_USAGE, "there is no key yet; the first run makes one")
    for entry in waiting:
        outbox.mark_refused(entry, {"detail": "its key was put away before it was sent"})
    new = key_id(load_or_create_key(home).public_key())
    typer.echo(f"the old key is in {away}; {len(waiting)} results were put to the refused ones")
    typer.echo(f"key {new} is this machine's key now: bench-agent enroll --server URL")


@keys.command()
def revoke(
    server: Server = None,
    key: Annotated[str | None, typer.Option("--key", help="Another key of yours.")] = None,
    reason: Annotated[str, typer.Option("--reason", help="Shown to everyone.")] = "put away",
    since: Annotated[
        int | None, typer.Option(min=0, help="Log index from which on its results do not count.")
    ] = None,
    yes: Yes = False,
) -> None:
    """End a key: nothing more is taken from it. This cannot be undone."""
    from bench_protocol.keys import key_id

    from ..base.keys import load_or_create_key

    home = open_home()
    target = key or key_id(load_or_create_key(home).public_key())
    ask(f"End key {target} for good?", yes)
    client = open_client(server, home)
    with talking(client):
        client.revoke(target, reason, since)
    typer.echo(f"key {target} is revoked at {client.server}")


@results.command("list")
def list_results(server: Server = None, as_json: Json = False) -> None:
    """List what this machine's key sent, hidden results too."""
    client = open_client(server, open_home())
    with talking(client):
        found = client.act("list")["results"]
    if as_json:
        print_json(found)
        return
    for row in found:
        state = row["moderation"] or row["unranked_reason"] or f"level {row['trust_level']}"
        typer.echo(f"{row['id']}  {row['received_at'][:10]}  {row['workload']}  {state}")


@results.command()
def export(
    file: Annotated[Path, typer.Argument(help="Takes JSON lines: envelope and receipt of each.")],
    server: Server = None,
) -> None:
    """Write everything this machine's key sent into a file."""
    client = open_client(server, open_home())
    with talking(client):
        found = client.act("export")["results"]
    file.write_text("".join(json.dumps(row) + "\n" for row in found))
    typer.echo(f"{len(found)} results in {file}")


@results.command()
def hide(result: ResultId, server: Server = None) -> None:
    """Hide a result: it counts no more and is not shown, until it is shown again."""
    _say("hide", result, server)


@results.command("show")
def show_result(result: ResultId, server: Server = None) -> None:
    """Show a hidden result again."""
    _say("show", result, server)


@results.command()
def withdraw(result: ResultId, server: Server = None, yes: Yes = False) -> None:
    """Have a result erased: payload, link to the key, and salt. This cannot be undone."""
    ask(f"Erase result {result} for good?", yes)
    _say("withdraw", result, server)


@results.command()
def pseudonymise(
    name: Annotated[
        str | None, typer.Option("--name", help="Shown instead; none: no name.")
    ] = None,
    server: Server = None,
) -> None:
    """Change the name that is shown with your results, or take it away."""
    client = open_client(server, open_home())
    with talking(client):
        client.act("rename", display_name=name)
    typer.echo(f"shown as {name}" if name else "shown without a name")


def _say(kind: "OwnAct", result: str, server: str | None) -> None:
    client = open_client(server, open_home())
    with talking(client):
        client.act(kind, result)
    typer.echo(f"{result}: {kind} done")
