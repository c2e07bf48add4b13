"""``plan`` and ``run``: what would be measured, and measuring it."""

import os
import secrets
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    Exit,
    Json,
    Like,
    PresetName,
    Server,
    ask,
    choosing_cells,
    open_home,
    print_json,
    probe_frameworks,
    stop,
)

if TYPE_CHECKING:
    from ..base.home import Home
    from ..plan.plan import Plan, Selection
    from ..run.journal import Journal

Yes = Annotated[
    bool,
    typer.Option(
        "--yes", "-y", help="Do not ask: neither before a plan above 24 h nor for the licence."
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume/--fresh",
        help="Go on with a run that was cut off (it keeps its own filters); where none was, as "
        "with --fresh, begin a new one.",
    ),
]


Events = Annotated[
    bool,
    typer.Option(
        "--events", help="Print JSON lines while it runs; the last is what --json prints."
    ),
]
Wait = Annotated[
    float,
    typer.Option("--wait-seconds", min=0, help="Wait so long for an idle and cool machine."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Stop where the machine is busy, hot or on battery."),
]


@choosing_cells
def plan(
    selection: "Selection",
    preset: PresetName = None,
    like: Like = None,
    as_json: Json = False,
) -> None:
    """Show every cell a run would measure, how long it takes, and what is left out and why."""
    from ..output import documents

    made = _make_plan(preset, like, selection)
    if as_json:
        print_json(documents.plan_document(made))
    else:
        documents.print_plan(made)


@choosing_cells
def run(
    selection: "Selection",
    preset: PresetName = None,
    like: Like = None,
    server: Server = None,
    yes: Yes = False,
    resume: Resume = False,
    events: Events = False,
    wait_seconds: Wait = 30.0,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Measure, sign and keep the results; with a server, post them."""
    from rich.console import Console

    from ..base.keys import load_or_create_key
    from ..doctor.unfit import refuse_unfit
    from ..output.documents import summary_document
    from ..output.events import EventLines
    from ..output.live import LiveDisplay
    from ..output.summary import show_end
    from ..remote.connection import token_for
    from ..run.idle_gate import IdleGate
    from ..run.interrupt import gentle_interrupt
    from ..run.run import run_plan
    from ..run.run_lock import alone
    from ..worker import pretrained

    home = open_home()
    # Before anything long: a folder or file that cannot be used is said now.
    refuse_unfit(home)
    load_or_create_key(home)
    pretrained.chosen_file(os.environ)
    if server:
        _agree(server, home, yes)
    console, lines = Console(stderr=as_json), EventLines(sys.stdout)
    reporter = lines if events else LiveDisplay(console)
    with alone(home):
        journal = _begin(home, preset, like, selection, yes, resume)
        with reporter, gentle_interrupt(reporter.note) as stop_asked:
            gate = IdleGate(wait_seconds, strict)
            token = token_for(server, os.environ, named=True) if server else None
            summary = run_plan(journal, home, server, reporter, stop_asked, gate=gate, token=token)
    if events:
        lines.summary(summary_document(summary))
    elif as_json:
        print_json(summary_document(summary))
    else:
        show_end(console, summary, home, server)
    if summary.interrupted:
        raise typer.Exit(Exit.INTERRUPTED)
    if summary.server_unreachable:
        submit = home.command(f"submit --server {server}")
        stop(Exit.SERVER_UNREACHABLE, f"results are safe in the outbox: {submit}")
    if summary.failed or summary.refused:
        raise typer.Exit(Exit.SOME_FAILED)


def _begin(
    home: "Home",
    preset: str | None,
    like: str | None,
    selection: "Selection",
    yes: bool,
    resume: bool,
) -> "Journal":
    """The run that was cut off, or a new one."""
    from bench_protocol.seeded import DEFAULT_SEED

    from ..run.journal import begin, unfinished

    journal = unfinished(home) if resume else None
    if journal is None:
        made = _make_plan(preset, like, selection)
        _check_plan(made, yes)
        if resume:
            typer.echo("the last run was not cut off: a new one begins", err=True)
        journal = begin(home, secrets.token_hex(16), DEFAULT_SEED, made)
    return journal


def _agree(server: str, home: "Home", yes: bool) -> None:
    """Ask for consent before the measuring; where the server is away, submit asks later."""
    from ..base.errors import ServerUnreachable
    from .options import open_client
    from .submit import agree

    client = open_client(server, home)
    try:
        agree(client, None, yes)
    except ServerUnreachable:
        pass  # said once the run begins; what is measured waits in the outbox
    finally:
        client.close()


def _make_plan(preset: str | None, like: str | None, selection: "Selection") -> "Plan":
    from .. import data
    from ..base.errors import UsageProblem
    from ..machine import read_facts
    from ..plan import estimates
    from ..plan.memory_fit import room_of
    from ..plan.plan import check_names, make_plan
    from ..plan.presets import like_named, preset_named
    from ..run import calibration

    if preset and like:
        raise UsageProblem("--preset and --like each say what to run: give one of them")
    chosen = like_named(like) if like else preset_named(preset or "quick")
    check_names(selection)
    probes, home = probe_frameworks(selection.frameworks), open_home()
    room = room_of(read_facts())
    made = make_plan(chosen, selection, probes, paces=estimates.load(home.paces), room=room)
    if selection.data == "real":
        data.require({planned.workload.data_set.name: None for planned in made.cells})
    if calibration.is_worth_it(made) and (unknown := calibration.unknown(made, home)):
        calibration.calibrate(unknown, home, lambda line: typer.echo(line, err=True))
        made = make_plan(chosen, selection, probes, paces=estimates.load(home.paces), room=room)
    return made


def _check_plan(made: "Plan", yes: bool) -> None:
    from bench_protocol import format as people

    from ..output.documents import LONG_PLAN_SECONDS, left_out, plan_warnings

    if not made.cells:
        stop(Exit.WRONG_USAGE, "\n".join((*left_out(made), "nothing to run")))
    for line in plan_warnings(made):
        typer.echo(line, err=True)
    if made.estimate_seconds > LONG_PLAN_SECONDS:
        ask(f"This takes about {people.rough(made.estimate_seconds)}. Go on?", yes)
