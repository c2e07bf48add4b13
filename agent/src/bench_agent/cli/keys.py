"""``keys``: show, rotate, renew and revoke this machine's key."""

from typing import Annotated

import typer

from bench_protocol.signing.keys import key_id

from ..base.keys import load_or_create_key, next_key, put_key_away, take_next_key
from ..base.terminal import write, write_json
from ..remote import known_servers
from ..remote.outbox import Outbox
from .exits import Exit, stop
from .options import Json, NamedServer, group, option
from .setup import ask, exchange, open_client, open_home

app = group("This machine's key: show, rotate, renew, revoke.")
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command("show")
def show_key(as_json: Json = False) -> None:
    """Show the key's id and where the key is."""
    home = open_home()
    key, file = key_id(load_or_create_key(home).public_key()), str(home.key)
    if as_json:
        write_json({"key_id": key, "file": file})
    else:
        write(f"{key}\n{file}")


@app.command()
def rotate(
    servers: Annotated[
        list[str], option("--server", "URL", "Server that knows the key. Repeatable.")
    ] = [],
    leave: Annotated[
        list[str],
        option(
            "--leave", "URL", "A server that is gone: its results keep the old key. Repeatable."
        ),
    ] = [],
) -> None:
    """Replace this machine's key with a new one on every named server.

    The old key is gone afterwards, so name every server that this machine has met. The old key
    signed the pending results in the outbox: submit them first.
    """
    home = open_home()
    if not servers:
        stop(Exit.WRONG_USAGE, "name every server that knows the key: --server URL, repeatable")
    named = {server.rstrip("/") for server in (*servers, *leave)}
    if forgotten := sorted(set(known_servers.addresses(home)) - named):
        more = " ".join(f"--server {server}" for server in forgotten)
        stop(
            Exit.WRONG_USAGE,
            "results that the old key sent to a server that is not named could never be withdrawn: "
            f"add {more}, or --leave URL for a server that is gone",
        )
    if any(Outbox(home.outbox).pending()):
        stop(
            Exit.WRONG_USAGE,
            "the outbox has pending results, signed with the old key. Send them first:\n"
            "  bench-agent submit\n"
            "or, where the key is revoked:\n  bench-agent keys renew",
        )
    new = next_key(home)
    for server in servers:
        with exchange(open_client(server, home)) as client:
            client.rotate(new)
        write(f"{client.server} knows the new key")
    take_next_key(home)
    write(f"this machine's key is now {key_id(new.public_key())}")


@app.command()
def renew(yes: Yes = False) -> None:
    """Start with a new key after the old one was revoked or its server is gone.

    The old key is stored beside the new one. The pending results that it signed move to the
    refused ones, because no server accepts them any more.
    """
    home = open_home()
    outbox = Outbox(home.outbox)
    waiting = list(outbox.pending())
    ask(f"Set aside the old key and its {len(waiting)} pending results?", yes)
    try:
        away = put_key_away(home)
    except FileNotFoundError:
        stop(Exit.WRONG_USAGE, "there is no key yet; the first run makes one")
    for entry in waiting:
        outbox.move(entry, "refused", {"detail": "its key was replaced before it was sent"})
    new = key_id(load_or_create_key(home).public_key())
    write(f"the old key is now in {away}")
    write(f"its {len(waiting)} pending results are marked as refused")
    write(f"this machine's key is now {new}")
    write("To make it known to a server:\n  bench-agent enroll --server URL")


@app.command()
def revoke(
    server: NamedServer = None,
    key: Annotated[
        str | None, option("--key", "KEY_ID", "Another key of yours, by its id.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Shown to everyone.")] = "no longer used",
    since: Annotated[
        int | None, option("--since", "N", "Log index from which its results do not count.", min=0)
    ] = None,
    yes: Yes = False,
) -> None:
    """Revoke a key: servers accept nothing more from it. This cannot be undone."""
    home = open_home()
    target = key or key_id(load_or_create_key(home).public_key())
    ask(f"Revoke key {target} for good?", yes)
    with exchange(open_client(server, home)) as client:
        client.revoke(target, reason, since)
    write(f"key {target} is revoked at {client.server}")
