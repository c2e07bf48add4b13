"""``submit``, ``status`` and ``enroll``: post the outbox, show it, enroll the key."""

from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import typer

from bench_protocol.base.format import plural
from bench_protocol.payload.doubts import disturbances
from bench_protocol.payload.result import Measured, Result

from ..base.errors import ServerUnreachable
from ..base.terminal import write, write_json
from ..output import documents
from ..output.console import FAILURE, WARNING, complain, console, say
from ..output.summary import rank_lines
from ..remote.client import Client, ServerRefused
from ..remote.connection import reading
from ..remote.outbox import Entry, Outbox, problem_text
from ..remote.rank import MachineRank, machine_rank
from ..remote.submit import Delivery
from ..remote.submit import submit as post
from .exits import Exit, stop
from .options import Json, NamedServer, option
from .setup import ask, exchange, open_client, open_home

CONSENT = """\
Results are sent to {server}.
It publishes them under {license}, for anyone to use.
Sent:     models of processor, GPU and machine, memory, versions of system and
          software, settings that change speed, times, losses, and what
          sensors read (load, clocks, heat, energy);
          a hash that tells this machine from others.
Not sent: names of host and user, serial numbers, network addresses, folders.
Key:      results are signed by a key that never leaves this machine.
Undo:     bench-agent results hide | show | withdraw; a withdrawn result is
          erased there."""
# The states of a key in an enrollment's answer, in words.
KEY_STATES = {
    "pending": "waits for approval",
    "active": "is enrolled",
    "rotated": "was rotated",
    "revoked": "was revoked",
}
Agree = Annotated[
    bool, typer.Option("--yes", "-y", help="Agree to the server's licence without being asked.")
]


def submit(server: NamedServer = None, yes: Agree = False, as_json: Json = False) -> None:
    """Post the pending results in the outbox, each once. The first time, show what is sent. Say
    before which of them can be ranked: never those that were measured without a server."""
    home = open_home()
    outbox = Outbox(home.outbox)
    sent: list[Delivery] = []
    refused: list[Delivery] = []
    place: MachineRank | None = None
    waiting = 0
    client = open_client(server, home)
    try:
        if client.checkpoints and client.checkpoints.stored_server:
            client.checkpoints.meet()  # results that its log lost are pending again
        waiting = len(list(outbox.pending()))
        if waiting:
            doubtful = _say_what_ranks(client, outbox)
            asked = ask_consent(client, outbox, yes)
            if doubtful and not asked and typer.get_text_stream("stdin").isatty():
                ask("Send them anyway?", yes)
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
        write_json({"sent": answers, "refused": problems})
    else:
        shown = console()
        counts = f"{len(sent)} sent, {len(refused)} refused"
        say(shown, counts if waiting else "nothing to send: the outbox has no pending result")
        # What has no challenge was named before it was sent.
        with suppress(ServerUnreachable), reading(client.server):
            if note := _level_1_note([one.answer for one in sent if one.entry.result().challenge]):
                say(shown, note, WARNING)
        for problem in problems:
            say(shown, f"{client.server} refused: {problem_text(problem)}", FAILURE)
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
    verdicts = (answer["verdicts"] for answer in answers)
    stale = [
        [one["sentence"] for one in those if one["effect"] == "stale" and not one["passed"]]
        for those in verdicts
    ]
    first, count = next(filter(None, stale), None), sum(map(bool, stale))
    fix = "fix: measure again with bench-agent run --server URL"
    if first is None:
        return None
    return f"{count} of {len(answers)} stay at trust level 1: {first[0]}; {fix}"


def ask_consent(client: Client, outbox: Outbox | None, yes: bool) -> bool:
    """Before a server gets its first result: say what is sent, name the licence, ask. The first
    result can be viewed, every byte of it. Returns whether it asked.

    Raises:
        ServerUnreachable: the server does not say under which licence it publishes.
    """
    checkpoints = client.checkpoints
    if checkpoints is None:
        return False
    offered = client.license()
    if checkpoints.meet().license == offered:
        return False
    first = next(outbox.pending(), None) if outbox else None
    if not yes:
        write(CONSENT.format(server=client.server, license=offered), err=True)
    ask("Agree, and send?", yes, None if first is None else partial(_show_whole, first))
    checkpoints.agree(offered)
    return True


def _show_whole(entry: Entry) -> None:
    """Everything that is sent of one result: its payload, then every byte of the envelope."""
    write_json(entry.document())
    write(f"\nThe same, signed, as it is sent:\n{entry.raw.decode()}\n")


def _say_what_ranks(client: Client, outbox: Outbox) -> bool:
    """Say, before anything is published, how many of the pending results this server can rank, why
    not the others, and how many were disturbed. Returns whether any is unranked or disturbed."""
    origin = client.checkpoints.meet().origin if client.checkpoints else None
    found: Counter[str | None] = Counter()
    slowed = 0
    for result in (entry.result() for entry in outbox.pending()):
        found[_why_unranked(result, origin)] += 1
        slowed += bool(disturbances(result.warnings))
    every = plural(found.total(), "result")
    can = found.pop(None, 0)
    condition = ", if the server's checks pass" if can else ""
    lines = [f"{can} of {every} can be ranked{condition}."]
    lines += [f"Never ranked: {count} {why}." for why, count in found.items()]
    if slowed:
        lines += [f"Not worth sharing: {slowed} that other work or heat slowed."]
    complain("\n".join(lines), WARNING if len(lines) > 1 else "")
    return len(lines) > 1


def _why_unranked(result: Result, origin: str | None) -> str | None:
    if not isinstance(result.outcome, Measured):
        return "without a measurement, because it failed"
    if result.challenge is None:
        return "measured without a server; to measure again: bench-agent run --server URL"
    if origin is not None and result.challenge.server_origin != origin:
        return f"measured for another server, {result.challenge.server_origin}"
    return None


def status(as_json: Json = False) -> None:
    """Show the outbox: pending, sent and refused results."""
    home = open_home()
    if as_json:
        write_json(documents.status_document(home, Outbox(home.outbox)))
    else:
        documents.print_status(home, Outbox(home.outbox))


def enroll(
    server: NamedServer = None,
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
    with exchange(open_client(server, home)) as client, reading(client.server):
        answer = client.enroll(invite)
        offered, state = client.license(), KEY_STATES[answer["status"]]
        words = f"key {answer['key_id']} {state} at {client.server}"
    if as_json:
        write_json(answer)
    elif answer["status"] in ("rotated", "revoked"):
        stop(Exit.SOME_FAILED, f"{words} and no longer signs; bench-agent keys renew makes another")
    else:
        write(words)
    if not as_json:
        write(
            f"results sent there are published under {offered}; bench-agent run --server and "
            "submit ask whether you agree before the first is sent"
        )
