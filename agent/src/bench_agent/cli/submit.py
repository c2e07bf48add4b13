"""``submit``, ``status`` and ``enroll``: post the outbox, show it, enroll the key."""

from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import typer

from bench_protocol.base.format import plural
from bench_protocol.payload.doubts import disturbances

from ..base.errors import ServerUnreachable
from ..output import documents
from ..output.console import FAILURE, WARNING, complain, console, say
from ..output.summary import rank_lines
from ..remote.client import Client, ServerRefused
from ..remote.outbox import Entry, Outbox
from ..remote.rank import MachineRank, machine_rank
from ..remote.submit import Delivery
from ..remote.submit import submit as post
from .exits import Exit, stop
from .options import Json, NamedServer, option
from .setup import ask, exchange, open_client, open_home, print_json

CONSENT = """\
Results are sent to {server}, which publishes them under {license}, for anyone to use.
Sent:     models of processor, GPU and machine, memory, versions of system and software, settings
          that change speed, times, losses, and what sensors read (load, clocks, heat, energy);
          a hash that tells this machine from others.
Not sent: names of host and user, serial numbers, network addresses, folders.
Key:      results are signed by a key that never leaves this machine.
Undo:     bench-agent results hide | show | withdraw; a withdrawn result is erased there."""
Agree = Annotated[
    bool, typer.Option("--yes", "-y", help="Agree to the server's licence without being asked.")
]


def submit(server: NamedServer = None, yes: Agree = False, as_json: Json = False) -> None:
    """Post the pending results in the outbox, each once. The first time, show what is sent."""
    home = open_home()
    outbox = Outbox(home.outbox)
    sent: list[Delivery] = []
    refused: list[Delivery] = []
    place: MachineRank | None = None
    waiting = len(list(outbox.pending()))
    client = open_client(server, home)
    try:
        if waiting:
            ask_consent(client, outbox, yes)
            _ask_about_disturbed(outbox, yes)
            for delivery in post(client, outbox):
                (sent if delivery.state == "sent" else refused).append(delivery)
            workloads = {delivery.entry.result().cell.workload for delivery in sent}
            with suppress(ServerUnreachable, ServerRefused):
                place = machine_rank(client, sent[-1].result_id, workloads) if sent else None
    except ServerUnreachable as error:
        left = waiting - len(sent) - len(refused)
        stop(Exit.SERVER_UNREACHABLE, f"{error}; {len(sent)} sent, {left} pending in the outbox")
    finally:
        client.close()
    answers, problems = ([delivery.answer for delivery in each] for each in (sent, refused))
    if as_json:
        print_json({"sent": answers, "refused": problems})
    else:
        shown = console()
        counts = f"{len(sent)} sent, {len(refused)} refused"
        say(shown, counts if waiting else "nothing to send: the outbox has no pending result")
        if note := _level_1_note(answers):
            say(shown, note, WARNING)
        for problem in problems:
            say(shown, f"refused: {problem.get('detail', 'no reason given')}", FAILURE)
        if place:
            say(shown, "\n".join(rank_lines(place)))
        elif sent:
            say(
                shown, f"The last result is on no leaderboard:\n  {sent[-1].address(client.server)}"
            )
    if refused:
        raise typer.Exit(Exit.SOME_FAILED)


def _level_1_note(answers: list[dict[str, Any]]) -> str | None:
    """How many results stay at trust level 1 for lack of a fresh challenge, and why the first."""
    reasons = [
        next(
            (check["sentence"] for check in answer.get("verdicts") or () if _is_stale(check)), None
        )
        for answer in answers
    ]
    if not (stale := [reason for reason in reasons if reason]):
        return None
    return (
        f"{len(stale)} of {len(answers)} stay at trust level 1: {stale[0]}; "
        "fix: measure again with bench-agent run --server URL"
    )


def _is_stale(check: dict[str, Any]) -> bool:
    return check["effect"] == "stale" and not check["passed"]


def ask_consent(client: Client, outbox: Outbox | None, yes: bool) -> None:
    """Before a server gets its first result: say what is sent, name the licence, ask. The first
    result can be viewed, every byte of it.

    Raises:
        ServerUnreachable: the server does not say under which licence it publishes.
    """
    checkpoints = client.checkpoints
    if checkpoints is None:
        return
    offered = client.license()
    if checkpoints.meet().license == offered:
        return
    first = next(outbox.pending(), None) if outbox else None
    if not yes:
        typer.echo(CONSENT.format(server=client.server, license=offered), err=True)
    ask("Agree, and send?", yes, None if first is None else partial(_show_whole, first))
    checkpoints.agree(offered)


def _show_whole(entry: Entry) -> None:
    """Everything that is sent of one result: its payload, then every byte of the envelope."""
    print_json(entry.document())
    typer.echo(f"\nThe same, signed, as it is sent:\n{entry.raw.decode()}\n")


def _ask_about_disturbed(outbox: Outbox, yes: bool) -> None:
    """At a terminal, ask again before figures are sent that something else slowed down; the server
    would mark them. Elsewhere say so and go on."""
    slowed = [bool(disturbances(entry.result().warnings)) for entry in outbox.pending()]
    if yes or not any(slowed):
        return
    note = (
        f"Not worth sharing: {sum(slowed)} of {plural(len(slowed), 'result')}, because something "
        "else slowed this machine down meanwhile."
    )
    if typer.get_text_stream("stdin").isatty():
        typer.confirm(f"{note} Send all the same?", abort=True, err=True)
    else:
        complain(note, WARNING)


def status(as_json: Json = False) -> None:
    """Show the outbox: pending, sent and refused results."""
    home = open_home()
    if as_json:
        print_json(documents.status_document(home, Outbox(home.outbox)))
    else:
        documents.print_status(home, Outbox(home.outbox))


def enroll(
    server: NamedServer = None,
    name: Annotated[
        str | None, option("--name", "NAME", "Display name. It can be changed and is never signed.")
    ] = None,
    invite: Annotated[
        str | None,
        option(
            "--invite",
            "CODE",
            "Code, for servers that enroll by invitation. Others can see it in the list of "
            "processes, but not in BENCH_INVITE.",
            envvar="BENCH_INVITE",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make this machine's key known to a server."""
    home = open_home()
    with exchange(open_client(server, home)) as client:
        answer = client.enroll(name, invite)
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
            f"key {answer.get('key_id')} was {answer.get('status')} at {client.server} and no "
            "longer signs; bench-agent keys renew makes a new one",
        )
    if not as_json:
        typer.echo(
            f"results sent there are published under {offered}; bench-agent run --server and "
            "submit ask whether you agree before the first is sent"
        )
