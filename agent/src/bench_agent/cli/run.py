"""``run``: measure, sign and store the results; with a server, post them."""

import os
import secrets
from typing import Annotated, NoReturn

import typer

from bench_protocol.base.format import plural

from ..base.errors import ServerUnreachable
from ..base.home import Home
from ..base.keys import load_or_create_key
from ..base.terminal import write, write_json
from ..doctor.table import refuse_unfit
from ..machine import read_machine
from ..output.console import WARNING, complain, console
from ..output.documents import summary_document
from ..output.live import LiveDisplay
from ..output.summary import show_end
from ..plan.plan import Selection
from ..remote.connection import token_for
from ..remote.outbox import Outbox
from ..run import interpreters
from ..run.context import RunContext
from ..run.forms import Forms
from ..run.idle_gate import IdleGate
from ..run.interrupt import gentle_interrupt
from ..run.journal import Journal, begin, unfinished
from ..run.run import run_plan
from ..run.run_lock import alone
from ..run.self_test import SelfTests
from ..run.summary import RunSummary
from ..worker import pretrained
from .busy import idle_or_asked
from .exits import Exit, stop
from .help_others import HelpOthers, with_asked
from .options import EXPERT, LONGEST_SECONDS, Json, Like, PresetName, Server, choosing_cells, option
from .plan import check_plan, planned
from .setup import open_client, open_home, probe_frameworks
from .submit import ask_consent

Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        "-y",
        help="Agree to a plan above 24 h, a busy machine and the licence without being asked.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume/--fresh",
        show_default=False,
        help="Continue an interrupted run with the filters that it began with; if there is none, "
        "start one. --fresh always starts one.",
    ),
]
Wait = Annotated[
    float,
    option(
        "--wait-seconds",
        "SECONDS",
        f"Longest wait for an idle and cool machine, 0 to {LONGEST_SECONDS}.",
        panel=EXPERT,
        min=0,
        max=LONGEST_SECONDS,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", rich_help_panel=EXPERT, help="Stop if the machine is busy, hot or on battery."
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", help="At the end, print every kind of warning, not one for each cause."
    ),
]
NEVER_RANKED = (
    "Without --server these results can be shown later, but never ranked. For a rank, press "
    "Ctrl-C and add --server URL."
)


@choosing_cells
def run(
    selection: Selection,
    preset: PresetName = None,
    like: Like = None,
    server: Server = None,
    help_others: HelpOthers = None,
    yes: Yes = False,
    resume: Resume = False,
    wait_seconds: Wait = 30.0,
    strict: Strict = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Measure, sign and store the results; with a server, post them. What was measured without a
    server can never be ranked."""
    if not server:
        complain(NEVER_RANKED, WARNING)
    home = open_home()
    # Report a folder or file that cannot be used before any long work.
    refuse_unfit(home)
    load_or_create_key(home)
    pretrained.chosen_file(os.environ)
    token = token_for(server, os.environ, named=True) if server else None
    # A damaged journal is named before another run replaces it.
    if unfinished(home) is None and resume:
        last = (
            "The last run is complete" if Outbox(home.outbox).last_run() else "There is no run yet"
        )
        what = f"--like {like}" if like else f"--preset {preset or 'quick'}"
        write(f"{last}: --resume starts a new one, with {what}.", err=True)
    answers = consent_before(server, home, yes, resume) if server else False

    shown = console(stderr=as_json)
    with alone(home):
        journal = unfinished(home) if resume else None
        if journal is None:
            made, lay_out = planned(preset, like, selection, probe_frameworks)
            check_plan(made, yes)
            if server and answers:
                made = with_asked(made, lay_out, server, token, read_machine(home), help_others)
        else:
            made = journal.plan()
            interpreters.require({planned.python for planned in journal.cells if planned.python})
        gate = idle_or_asked(made, IdleGate(wait_seconds, strict), yes)
        journal = journal or begin(home, secrets.token_hex(16), secrets.token_hex(32), made)
        summary = measured(journal, home, LiveDisplay(shown), gate, server, token)
    if as_json:
        write_json(summary_document(summary))
    else:
        show_end(shown, summary, home, server, verbose)
    if summary.interrupted:
        raise typer.Exit(Exit.INTERRUPTED)
    if server and summary.server_unreachable:
        stop_unreachable(home, server)
    if summary.failed or summary.refused:
        raise typer.Exit(Exit.SOME_FAILED)


def measured(
    journal: Journal,
    home: Home,
    reporter: LiveDisplay,
    gate: IdleGate,
    server: str | None,
    token: str | None,
) -> RunSummary:
    """Measure a plan while the reporter shows it. The first Ctrl-C finishes the repeat."""
    with reporter, gentle_interrupt(reporter.note) as stop_asked:
        context = RunContext(
            home,
            reporter,
            server,
            token,
            stop_asked,
            gate,
            self_test=SelfTests(home, read_machine(home), reporter.note).refusal,
            choose_form=Forms(home, reporter.note, stop=stop_asked).choice,
        )
        return run_plan(journal, context)


def stop_unreachable(home: Home, server: str) -> NoReturn:
    submit = home.command(f"submit --server {server}")
    why = f"The results are safe in the outbox. To send them:\n  {submit}"
    stop(Exit.SERVER_UNREACHABLE, why)


def consent_before(server: str, home: Home, yes: bool, resume: bool = False) -> bool:
    """Ask for consent before the run, and name the results of earlier runs that it sends too; with
    ``resume``, none of that run. False if the server does not answer: submit asks later."""
    journal = unfinished(home) if resume else None
    own = journal.run_id if journal else None
    if older := sum(entry.run_id != own for entry in Outbox(home.outbox).pending()):
        results = plural(older, "pending result")
        write(
            f"The outbox has {results} of earlier runs: this run sends them too. "
            "Those measured without a server are shown there, but not ranked.",
            err=True,
        )
    client = open_client(server, home)
    try:
        ask_consent(client, None, yes)
    except ServerUnreachable:
        return False  # The run reports it; the results stay pending in the outbox.
    finally:
        client.close()
    return True
