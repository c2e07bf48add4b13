"""``submit``, ``status`` and ``enroll``: results on their way."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Exit, Json, Server, ask, open_client, open_home, print_json, stop

if TYPE_CHECKING:
    from ..remote.client import Client
    from ..remote.outbox import Outbox

Agree = Annotated[
    bool, typer.Option("--yes", "-y", help="Agree to the server's licence without being asked.")
]


def submit(server: Server = None, yes: Agree = False, as_json: Json = False) -> None:
    """Post the results that wait in the outbox, each once; the first time, show what is sent."""
    from ..base.errors import ServerUnreachable
    from ..machine import read_machine
    from ..remote.outbox import Outbox

    home = open_home()
    outbox = Outbox(home.outbox)
    sent: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    waiting = len(list(outbox.pending()))
    client = open_client(server, home)
    try:
        if waiting:
            agree(client, outbox, yes)
            for delivery in client.submit(outbox, read_machine(home).machine_hash):
                (sent if delivery.state == "sent" else refused).append(delivery.answer)
    except ServerUnreachable as error:
        left = waiting - len(sent) - len(refused)
        stop(Exit.SERVER_UNREACHABLE, f"{error}; {len(sent)} sent, {left} waiting in the outbox")
    finally:
        client.close()
    if as_json:
        print_json({"sent": sent, "refused": refused})
    else:
        typer.echo(f"{len(sent)} sent, {len(refused)} refused" if waiting else "nothing waits")
        if late := _late(sent):
            typer.echo(late)
        for problem in refused:
            typer.echo(f"refused: {problem.get('detail', 'no reason given')}")
    if refused:
        raise typer.Exit(Exit.SOME_FAILED)


def _late(answers: list[dict[str, Any]]) -> str | None:
    """What lateness or a missing challenge cost, with the server's reason for the first."""
    reasons = [
        next((found["sentence"] for found in answer.get("verdicts", ()) if _stale(found)), None)
        for answer in answers
    ]
    if not (stale := [reason for reason in reasons if reason]):
        return None
    return (
        f"{len(stale)} of {len(answers)} stay at trust level 1: {stale[0]}; "
        "bench-agent run --server URL asks for a challenge and sends as it measures"
    )


def _stale(verdict: dict[str, Any]) -> bool:
    return verdict["effect"] == "stale" and not verdict["passed"]


def agree(client: "Client", outbox: "Outbox | None", yes: bool) -> None:
    """Before the first result goes to a server: show the exact body, name the licence, ask.

    Raises:
        ServerUnreachable: the server does not say under which licence it publishes.
    """
    witness = client.witness
    if witness is None:
        return
    offered = client.license()
    if witness.meet().license == offered:
        return
    first = next(outbox.pending(), None) if outbox else None
    if not yes and first is not None:
        typer.echo(f"The first of what will be sent to {client.server}, every byte of it:\n")
        typer.echo(first.raw.decode())
        typer.echo("\nwhose payload is, decoded:\n")
        print_json(first.document())
    ask(
        f"{client.server} publishes results under {offered}, for anyone to use. Agree, and send?",
        yes,
    )
    witness.agree(offered)


def status(as_json: Json = False) -> None:
    """Show what waits in the outbox, what was sent and what was refused."""
    from ..output import documents
    from ..remote.outbox import Outbox

    home = open_home()
    if as_json:
        print_json(documents.status_document(home, Outbox(home.outbox)))
    else:
        documents.print_status(home, Outbox(home.outbox))


def enroll(
    server: Server = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Display name; can be changed, is never signed.")
    ] = None,
    invite: Annotated[
        str | None, typer.Option("--invite", help="Code, for servers that enroll by invitation.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make this machine's key known to a server."""
    from ..machine import read_machine

    home = open_home()
    client = open_client(server, home)
    with talking(client):
        answer = client.enroll(read_machine(home).machine_hash, name, invite)
        offered = client.license()
    if as_json:
        print_json(answer)
    elif answer.get("status") == "pending":
        typer.echo(f"key {answer.get('key_id')} waits for approval at {client.server}")
    elif answer.get("status") == "active":
        typer.echo(f"key {answer.get('key_id')} is enrolled at {client.server}")
    else:
        stop(
            Exit.SOME_FAILED,
            f"key {answer.get('key_id')} was {answer.get('status')} at {client.server} and signs "
            "no more: bench-agent keys renew begins with a new one",
        )
    if not as_json:
        typer.echo(
            f"results sent there are published under {offered}; bench-agent run --server and "
            "submit ask whether you agree before the first is sent"
        )


class talking:  # noqa: N801 - read as a word: with talking(client)
    """Close the client at the end; say in one line why the server did not do what was asked."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        from bench_protocol.errors import InvalidField

        from ..base.errors import ServerUnreachable
        from ..remote.client import ServerRefused

        self._client.close()
        if isinstance(error, InvalidField):
            stop(Exit.WRONG_USAGE, error.detail)
        if isinstance(error, ServerUnreachable):
            stop(Exit.SERVER_UNREACHABLE, str(error))
        if isinstance(error, ServerRefused):
            stop(Exit.SOME_FAILED, str(error))
