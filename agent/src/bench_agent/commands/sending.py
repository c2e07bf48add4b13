"""``submit``, ``status`` and ``enroll``: results on their way to a server."""

from typing import Annotated, Any

import typer

from .options import Exit, Json, Server, open_client, open_home, print_json, stop


def submit(server: Server = None, as_json: Json = False) -> None:
    """Post the results that wait in the outbox, each once."""
    from ..client import ServerUnreachable
    from ..keys import load_or_create_key
    from ..machine import read_machine
    from ..outbox import Outbox

    home = open_home()
    outbox = Outbox(home.outbox)
    sent: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    client = open_client(server, load_or_create_key(home))
    try:
        for delivery in client.submit(outbox, read_machine(home).machine_hash):
            (sent if delivery.state == "sent" else refused).append(delivery.answer)
    except ServerUnreachable as error:
        stop(Exit.SERVER_UNREACHABLE, f"{error}; {len(sent)} sent, the rest waits in the outbox")
    finally:
        client.close()
    if as_json:
        print_json({"sent": sent, "refused": refused})
    else:
        typer.echo(f"{len(sent)} sent, {len(refused)} refused")
        for problem in refused:
            typer.echo(f"refused: {problem.get('detail', 'no reason given')}")
    if refused:
        raise typer.Exit(Exit.SOME_FAILED)


def status(as_json: Json = False) -> None:
    """Show what waits in the outbox, what was sent and what was refused."""
    from .. import overview
    from ..outbox import Outbox

    home = open_home()
    if as_json:
        print_json(overview.status_document(home, Outbox(home.outbox)))
    else:
        overview.print_status(home, Outbox(home.outbox))


def enroll(
    server: Server = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Display name; can be changed, is never signed.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make this machine's key known to a server."""
    from ..client import ServerRefused, ServerUnreachable
    from ..keys import load_or_create_key
    from ..machine import read_machine

    home = open_home()
    client = open_client(server, load_or_create_key(home))
    try:
        answer = client.enroll(read_machine(home).machine_hash, name)
    except ServerUnreachable as error:
        stop(Exit.SERVER_UNREACHABLE, str(error))
    except ServerRefused as error:
        stop(Exit.SOME_FAILED, str(error))
    finally:
        client.close()
    if as_json:
        print_json(answer)
    else:
        typer.echo(f"key {answer.get('key_id')} is enrolled at {client.server}")
