"""``plan`` and ``run``: show what a run measures, and measure it."""

import os
import secrets
import sys
from typing import Annotated

import typer
from rich.console import Console

from bench_protocol.format import rough

from .. import data
from ..base.errors import ServerUnreachable, UsageProblem
from ..base.home import Home
from ..base.keys import load_or_create_key
from ..doctor.unfit import refuse_unfit
from ..machine import read_facts, read_machine
from ..output import documents
from ..output.documents import LONG_PLAN_SECONDS, left_out, plan_warnings, summary_document
from ..output.events import EventLines
from ..output.live import LiveDisplay
from ..output.summary import show_end
from ..plan import estimates
from ..plan.memory_fit import free_memory_of
from ..plan.plan import Plan, Selection, check_names, make_plan
from ..plan.presets import like_named, preset_named
from ..remote.connection import token_for
from ..run import calibration, interpreters
from ..run.idle_gate import IdleGate
from ..run.interrupt import gentle_interrupt
from ..run.journal import Journal, begin, unfinished
from ..run.run import run_plan
from ..run.run_lock import alone
from ..run.self_test import SelfTests
from ..worker import pretrained
from .exits import Exit, stop
from .options import Json, Like, PresetName, Server, choosing_cells
from .setup import ask, open_client, open_home, print_json, probe_frameworks
from .submit import ask_consent
from .witness import offer

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
        help="Continue a run that was cut off, with its own filters. Without one, or with --fresh, "
        "start a new run.",
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
    typer.Option("--wait-seconds", min=0, help="Longest wait for an idle and cool machine."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Stop where the machine is busy, hot or on battery."),
]
Witness = Annotated[
    bool | None,
    typer.Option(
        "--witness/--no-witness",
        help="At the end, let the server take a speed by its own clock where that takes less than "
        "30 s; without either, ask.",
    ),
]


@choosing_cells
def plan(
    selection: Selection,
    preset: PresetName = None,
    like: Like = None,
    as_json: Json = False,
) -> None:
    """Show each cell of a run, how long it takes, and what is left out and why."""
    made = _make_plan(preset, like, selection)
    if as_json:
        print_json(documents.plan_document(made))
    else:
        documents.print_plan(made)


@choosing_cells
def run(
    selection: Selection,
    preset: PresetName = None,
    like: Like = None,
    server: Server = None,
    yes: Yes = False,
    resume: Resume = False,
    events: Events = False,
    wait_seconds: Wait = 30.0,
    strict: Strict = False,
    witness: Witness = None,
    as_json: Json = False,
) -> None:
    """Measure, sign and store the results; with a server, post them."""

    home = open_home()
    # Before any long work: report a folder or file that cannot be used.
    refuse_unfit(home)
    load_or_create_key(home)
    pretrained.chosen_file(os.environ)
    if server:
        _ask_consent(server, home, yes)
    console, lines = Console(stderr=as_json), EventLines(sys.stdout)
    reporter = lines if events else LiveDisplay(console)
    with alone(home):
        journal = _begin(home, preset, like, selection, yes, resume)
        with reporter, gentle_interrupt(reporter.note) as stop_asked:
            gate = IdleGate(wait_seconds, strict)
            token = token_for(server, os.environ, named=True) if server else None
            tests = SelfTests(home, read_machine(home), reporter.note)
            summary = run_plan(
                journal,
                home,
                server,
                reporter,
                stop_asked,
                gate=gate,
                token=token,
                self_test=tests.refusal,
            )
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
    if server:
        offer(server, home, journal, summary, witness)
    if summary.failed or summary.refused:
        raise typer.Exit(Exit.SOME_FAILED)


def _begin(
    home: Home,
    preset: str | None,
    like: str | None,
    selection: Selection,
    yes: bool,
    resume: bool,
) -> Journal:
    """The journal of the run that was cut off, or of a new one.

    Raises:
        UsageProblem: an interpreter of the run that was cut off cannot be used any more.
    """

    journal = unfinished(home) if resume else None
    if journal is None:
        made = _make_plan(preset, like, selection)
        _check_plan(made, yes)
        if resume:
            typer.echo("the last run is complete: starting a new one", err=True)
        return begin(home, secrets.token_hex(16), secrets.token_hex(32), made)
    interpreters.require({planned.python for planned in journal.cells if planned.python})
    return journal


def _ask_consent(server: str, home: Home, yes: bool) -> None:
    """Ask for consent before the run. If the server does not answer, submit asks later."""
    client = open_client(server, home)
    try:
        ask_consent(client, None, yes)
    except ServerUnreachable:
        pass  # The run reports it; the results stay pending in the outbox.
    finally:
        client.close()


def _make_plan(preset: str | None, like: str | None, selection: Selection) -> Plan:
    if preset and like:
        raise UsageProblem("--preset and --like exclude each other: give one of them")
    chosen = like_named(like) if like else preset_named(preset or "quick")
    check_names(selection)
    probes, home = probe_frameworks(selection.frameworks), open_home()
    free_memory = free_memory_of(read_facts())
    made = make_plan(
        chosen,
        selection,
        probes,
        measured_times=estimates.load(home.measured_times),
        free_memory=free_memory,
    )
    if selection.data == "real":
        data.require({planned.workload.data_set.name: None for planned in made.cells})
    if calibration.is_worth_it(made) and (unknown := calibration.unknown(made, home)):
        calibration.calibrate(unknown, home, lambda line: typer.echo(line, err=True))
        made = make_plan(
            chosen,
            selection,
            probes,
            measured_times=estimates.load(home.measured_times),
            free_memory=free_memory,
        )
    return made


def _check_plan(made: Plan, yes: bool) -> None:

    if not made.cells:
        stop(Exit.WRONG_USAGE, "\n".join((*left_out(made), "nothing to run")))
    for line in plan_warnings(made):
        typer.echo(line, err=True)
    if made.estimate_seconds > LONG_PLAN_SECONDS:
        ask(f"This takes about {rough(made.estimate_seconds)}. Go on?", yes)
