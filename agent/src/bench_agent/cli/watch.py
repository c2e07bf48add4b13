"""``watch``: measure set-ups again when their environment changed, or weekly."""

import os
import secrets
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from bench_protocol.catalogue.matrix import Cell

from ..base.errors import NotIdle, ServerUnreachable
from ..base.home import Home
from ..base.keys import load_or_create_key
from ..base.terminal import write, write_json
from ..doctor.table import refuse_unfit
from ..machine import read_machine
from ..output.console import console, say
from ..output.documents import short_name, summary_document
from ..output.live import LiveDisplay
from ..output.summary import show_end
from ..plan.due import due
from ..plan.plan import Plan, Selection, check_names
from ..plan.presets import preset_of
from ..remote.client import Client
from ..remote.connection import token_for
from ..remote.outbox import Outbox
from ..remote.rank import History, change_words, histories
from ..run import journal
from ..run.idle_gate import IdleGate
from ..run.probe import merged, probe_each
from ..run.run_lock import alone
from ..run.summary import RunSummary
from ..worker import pretrained
from .exits import Exit
from .options import LENGTH, Json, PresetName, Server, choosing_cells, option
from .plan import check_plan, lay_out_plan
from .run import Wait, Yes, consent_before, measured, stop_unreachable
from .setup import open_home, usable_interpreters

EveryDays = Annotated[
    float,
    option(
        "--every-days",
        "DAYS",
        "Measure again when the last run is this old, even if nothing changed; 0 to 3650.",
        panel=LENGTH,
        min=0,
        max=3650,
    ),
]
NO_SERVER = "A server keeps this machine's history and ranks it: bench-agent watch --server URL."
NO_HISTORY = "The server has not ranked these results yet."


@dataclass(frozen=True)
class Start:
    """One start of the command.

    ``due``: why each set-up was due. ``not_idle``: why the run did not start or was cut short.
    ``histories``: the server's, of each measured set-up, None where it has none.
    """

    due: Mapping[Cell, str]
    not_idle: str | None
    summary: RunSummary
    histories: Mapping[Cell, History | None]


@choosing_cells
def watch(
    selection: Selection,
    preset: PresetName = None,
    every_days: EveryDays = 7.0,
    server: Server = None,
    yes: Yes = False,
    wait_seconds: Wait = 30.0,
    as_json: Json = False,
) -> None:
    """Measure set-ups again every week, and after a new driver, system or framework.

    Start it once a day. On an idle machine each start measures, once, the set-ups that are due:
    those with fewer than four runs since driver, system or framework changed, or whose last run is
    old. Runs of bench-agent run count too. With a server it posts the results and prints what the
    server's history says of each. Exit codes: 0 done; 1 a set-up failed, or the server refused a
    result; 2 wrong usage; 3 server unreachable; 4 the machine is not idle; 130 interrupted.
    """
    home = open_home()
    refuse_unfit(home)
    load_or_create_key(home)
    pretrained.chosen_file(os.environ)
    check_names(selection)
    token = token_for(server, os.environ, named=True) if server else None
    if server:
        consent_before(server, home, yes)
    probes = probe_each(home.logs, usable_interpreters(home), selection.frameworks)
    plan, _ = lay_out_plan(preset_of(preset), selection, merged(probes, selection.frameworks))
    check_plan(plan, yes)
    machine, every = read_machine(home), timedelta(days=every_days)
    summary, not_idle = RunSummary(), None
    with alone(home):
        reasons = due(plan, probes, machine, Outbox(home.outbox), every, datetime.now(UTC))
        for cell, why in reasons.items():
            write(f"{short_name(cell)} is due: {why}", err=True)
        try:
            if reasons:
                # No journal: the next start measures what is missing, and a run of bench-agent run
                # that was cut off can still resume.
                noted = journal.new(
                    secrets.token_hex(16), secrets.token_hex(32), _only(plan, reasons)
                )
                progress, gate = (
                    LiveDisplay(console(stderr=True)),
                    IdleGate(wait_seconds, strict=True),
                )
                summary = measured(noted, home, progress, gate, server, token)
        except NotIdle as error:
            not_idle = error.why
    start = Start(reasons, not_idle, summary, _histories(server, token, summary))
    if as_json:
        write_json(_document(start))
    else:
        _show(start, home, machine.os.name, server)
    _leave(start, home, server)


def _only(plan: Plan, cells: Container[Cell]) -> Plan:
    """The plan of some set-ups, each with the timing that it has in the whole plan."""
    left = tuple(planned for planned in plan.cells if planned.cell in cells)
    return replace(plan, cells=left, accuracy_passes=())


def _histories(
    server: str | None, token: str | None, summary: RunSummary
) -> Mapping[Cell, History | None]:
    """The server's history of each measured set-up; none before the server ranks the results."""
    if server is None or summary.rank is None:
        return {}
    client = Client(server, None, token=token)
    try:
        return histories(client, summary.rank.machine_id, summary.results)
    except ServerUnreachable:
        return {}
    finally:
        client.close()


def _document(start: Start) -> dict[str, Any]:
    return {
        "due": [
            {"cell": cell.model_dump(mode="json"), "cell_digest": cell.digest, "why": why}
            for cell, why in start.due.items()
        ],
        "not_idle": start.not_idle,
        **summary_document(start.summary),
        "histories": [
            {"cell_digest": cell.digest, **history.model_dump(mode="json")}
            for cell, history in start.histories.items()
            if history
        ],
    }


def _show(start: Start, home: Home, system: str, server: str | None) -> None:
    shown = console()
    if not start.due:
        say(shown, "Nothing is due.")
    elif start.not_idle:
        say(shown, f"The machine is not idle: {start.not_idle}. The next start measures.")
    else:
        show_end(shown, start.summary, home, server)
        for cell, history in start.histories.items():
            say(shown, f"{short_name(cell)}: {change_words(history, system)}")
        if not start.histories:
            say(shown, NO_HISTORY if server else NO_SERVER)


def _leave(start: Start, home: Home, server: str | None) -> None:
    summary = start.summary
    if summary.interrupted:
        raise typer.Exit(Exit.INTERRUPTED)
    if summary.failed or summary.refused:
        raise typer.Exit(Exit.SOME_FAILED)
    if start.not_idle:
        raise typer.Exit(Exit.NOT_IDLE)
    if server and summary.server_unreachable:
        stop_unreachable(home, server)
