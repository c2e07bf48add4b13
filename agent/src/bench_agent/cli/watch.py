"""``watch``: measure set-ups again when their environment changed, or weekly."""

import os
import secrets
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from bench_protocol.statistics.comparison import RUNS_FOR_A_VERDICT

from ..base.home import Home
from ..base.keys import load_or_create_key
from ..doctor.unfit import refuse_unfit
from ..machine import read_machine
from ..output.console import console
from ..output.live import LiveDisplay
from ..output.watch_table import document, show
from ..plan.plan import Plan, Selection, check_names
from ..plan.presets import preset_named
from ..remote.connection import token_for
from ..remote.outbox import Outbox
from ..run import journal
from ..run.forms import Forms
from ..run.idle_gate import IdleGate
from ..run.interrupt import gentle_interrupt
from ..run.probe import merged, probe_each
from ..run.run import run_plan
from ..run.run_lock import alone
from ..run.self_test import SelfTests
from ..run.summary import RunSummary
from ..watch import reported
from ..watch.due import Schedule
from ..watch.watch import Measure, Watch, Watched
from ..worker import pretrained
from .exits import Exit, stop
from .options import LENGTH, Json, PresetName, Server, choosing_cells
from .plan import check_plan, lay_out_plan
from .run import Wait, Yes, consent_before
from .setup import open_home, print_json, usable_interpreters

EveryDays = Annotated[
    float,
    typer.Option(
        "--every-days",
        min=0,
        max=3650,
        metavar="DAYS",
        rich_help_panel=LENGTH,
        help="Measure again when the last run is this old, even if nothing changed; 0 to 3650.",
    ),
]
Needed = Annotated[
    int,
    typer.Option(
        "--runs",
        min=RUNS_FOR_A_VERDICT,
        max=20,
        metavar="N",
        rich_help_panel=LENGTH,
        help="Runs that a verdict needs after a change, 3 to 20; each start adds one.",
    ),
]
Now = Annotated[
    bool,
    typer.Option(
        "--now",
        rich_help_panel=LENGTH,
        help="Measure all missing runs in this start: sooner, but runs in a row are less "
        "independent than runs of different days.",
    ),
]


@choosing_cells
def watch(
    selection: Selection,
    preset: PresetName = None,
    every_days: EveryDays = 7.0,
    needed: Needed = 5,
    now: Now = False,
    server: Server = None,
    yes: Yes = False,
    wait_seconds: Wait = 30.0,
    as_json: Json = False,
) -> None:
    """Measure set-ups again every week, and after a new driver, system or framework.

    It reports what became faster, slower or failed. Start it once a day or more often. On an idle
    machine each start measures, once, the set-ups that are due: those whose environment changed,
    that have too few runs since a change, or whose last run is old. Earlier runs of bench-agent run
    count too. Exit codes: 0 nothing became slower
    or failed; 1 something did, or the server refused a result; 2 wrong usage; 3 server unreachable;
    4 the machine is not idle; 130 interrupted.
    """
    home = open_home()
    refuse_unfit(home)
    load_or_create_key(home)
    pretrained.chosen_file(os.environ)
    check_names(selection)
    token = token_for(server, os.environ, named=True) if server else None
    if server:
        consent_before(server, home, yes)
    answers = probe_each(home.logs, usable_interpreters(home), selection.frameworks)
    probes = merged(answers, selection.frameworks)
    plan, _ = lay_out_plan(preset_named(preset or "quick"), selection, probes)
    check_plan(plan, yes)
    machine = read_machine(home)
    watching = Watch(
        plan,
        answers,
        machine,
        Outbox(home.outbox),
        home.watched,
        Schedule(needed, timedelta(days=every_days)),
        lambda: datetime.now(UTC),
    )
    tests = SelfTests(home, machine, lambda line: typer.echo(line, err=True))
    with alone(home):
        watched = watching.start(
            _measure(home, server, token, wait_seconds, tests), needed if now else 1
        )
        if as_json:
            print_json(document(watched))
        else:
            show(console(), watched)
        reported.store(home.watched, watched.newest)
    _leave(watched, home, server)


def _measure(
    home: Home, server: str | None, token: str | None, wait_seconds: float, tests: SelfTests
) -> Measure:
    """Measures a plan as ``bench-agent run --strict`` does; its progress is on standard error.

    It writes no journal: the next start measures what is missing, and a run of
    ``bench-agent run`` that was cut off can still resume.
    """

    def measure(plan: Plan) -> RunSummary:
        noted = journal.new(secrets.token_hex(16), secrets.token_hex(32), plan)
        reporter = LiveDisplay(console(stderr=True))
        with reporter, gentle_interrupt(reporter.note) as stop_asked:
            return run_plan(
                noted,
                home,
                server,
                reporter,
                stop_asked,
                gate=IdleGate(wait_seconds, strict=True),
                token=token,
                self_test=tests.refusal,
                choose_form=Forms(home, reporter.note, stop=stop_asked).choice,
            )

    return measure


def _leave(watched: Watched, home: Home, server: str | None) -> None:
    """Exit with what matters most to a script."""
    if any(run.interrupted for run in watched.runs):
        raise typer.Exit(Exit.INTERRUPTED)
    moved = {finding.moved for finding in watched.findings.values()}
    if moved & {"failed", "slower"} or any(run.refused for run in watched.runs):
        raise typer.Exit(Exit.SOME_FAILED)
    if watched.not_idle:
        raise typer.Exit(Exit.NOT_IDLE)
    if any(run.server_unreachable for run in watched.runs):
        submit = home.command(f"submit --server {server}")
        stop(
            Exit.SERVER_UNREACHABLE,
            f"The results are safe in the outbox. To send them:\n  {submit}",
        )
