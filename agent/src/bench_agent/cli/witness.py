"""``witness``: a lower bound of this machine's speed, by a server's clock."""

from collections.abc import Callable

import typer

from bench_protocol.payload import figures
from bench_protocol.training import speed_run

from ..base.errors import ServerUnreachable, UsageProblem
from ..base.home import Home
from ..base.keys import load_or_create_key
from ..base.speed_run import expected_seconds
from ..machine import read_machine
from ..plan import estimates
from ..plan.plan import PlannedCell, Selection, check_names, make_plan
from ..plan.presets import preset_named
from ..remote.client import Client, ServerRefused
from ..remote.speed_run import SpeedRunClient
from ..run.journal import Journal
from ..run.speed_run import Witnessed, cell_of
from ..run.speed_run import witness as run_witnessed
from ..run.summary import RunSummary
from .exits import Exit
from .options import Devices, Frameworks, Json, NamedServer
from .setup import exchange, open_client, open_home, print_json, probe_frameworks
from .submit import Agree, ask_consent

OFFERED_SECONDS = 30.0


def witness(
    server: NamedServer = None,
    framework: Frameworks = [],
    device: Devices = [],
    yes: Agree = False,
    as_json: Json = False,
) -> None:
    """Train for a few seconds while the server keeps the time: a lower bound of the speed."""
    home = open_home()
    planned = choose(home, tuple(framework), tuple(device))
    client = open_client(server, home)
    with exchange(client):
        ask_consent(client, None, yes)
        done = at_server(client, home, planned, lambda line: typer.echo(line, err=True))
    if as_json:
        print_json(vars(done))
    else:
        typer.echo(in_words(done))
    if done.state == "refuted":
        raise typer.Exit(Exit.SOME_FAILED)


def choose(home: Home, frameworks: tuple[str, ...], devices: tuple[str, ...]) -> PlannedCell:
    """The cell of the framework and device that are fastest here, as far as is known.

    Raises:
        UsageProblem: none can train it.
    """
    selection = Selection(
        workloads=(speed_run.WORKLOAD,),
        frameworks=frameworks,
        devices=devices,
        recipes=("tuned",),
        batch_sizes=(speed_run.BATCH_SIZE,),
        precisions=("float32",),
    )
    check_names(selection)
    made = make_plan(
        preset_named("quick"),
        selection,
        probe_frameworks(frameworks),
        measured_times=estimates.load(home.measured_times),
    )
    if not made.cells:
        raise UsageProblem("no framework here can train it: bench-agent doctor says why")
    return cell_of(min(made.cells, key=lambda planned: planned.estimate_seconds))


def at_server(
    client: Client, home: Home, planned: PlannedCell, say: Callable[[str], None]
) -> Witnessed:
    """A witnessed run at a server; enrolls the key if the server does not know it.

    Raises:
        ServerUnreachable, ServerRefused, UsageProblem: see there.
    """
    key, machine_hash = load_or_create_key(home), read_machine(home).machine_hash
    try:
        issued = client.challenge()
    except ServerRefused as refusal:
        if refusal.problem.get("code") != "unknown_key":
            raise
        client.enroll()
        issued = client.challenge()
    cell = planned.cell
    say(f"witnessed run: {cell.framework} on {cell.device}")
    log = home.logs / "witness" / f"{cell.framework}-{cell.device}.log"
    return run_witnessed(
        planned, SpeedRunClient(client, key, issued.challenge), machine_hash, log, say
    )


def in_words(done: Witnessed) -> str:
    """The outcome in a sentence."""
    rates = (
        f"at least {done.samples_per_second:,} samples/s by the server's clock "
        f"({done.agents_samples_per_second:,.0f} by this machine's), for {speed_run.SETUP_WORDS}: "
        "another set-up than those of a run, so the rates do not compare"
    )
    if done.state == "witnessed":
        return f"witnessed: {rates}; log entry {done.log_index}"
    if done.state == "refuted":
        return f"NOT WITNESSED: {done.reason}"
    return f"not recomputed yet: {rates}; the machine's page will show it"


def offer(
    server: str, home: Home, journal: Journal, summary: RunSummary, wanted: bool | None
) -> None:
    """At the end of a run with a server: a witnessed run where it takes less than
    :data:`OFFERED_SECONDS`. Without a wish ask at a terminal, else say how to have one. The results
    are sent by then, so one that fails is a line and no failure of the run.
    """
    planned = fastest(journal, summary)
    if planned is None or wanted is False:
        return
    if wanted is None:
        command = home.command(f"witness --server {server}")
        if not typer.get_text_stream("stdin").isatty():
            typer.echo(
                f"To have the server time this machine by its own clock: {command}", err=True
            )
            return
        if not typer.confirm("Let the server time this machine by its own clock (15 s)?", err=True):
            return
    client = open_client(server, home)
    try:
        done = at_server(client, home, planned, lambda line: typer.echo(line, err=True))
        typer.echo(in_words(done), err=True)
    except (ServerRefused, ServerUnreachable, UsageProblem) as error:
        typer.echo(f"no witnessed run: {error}", err=True)
    finally:
        client.close()


def fastest(journal: Journal, summary: RunSummary) -> PlannedCell | None:
    """The cell of a witnessed run on the run's fastest device that is fast enough, or None.

    The rate is the one that the run measured in this workload; without one it follows from the
    FLOP/s of the others.
    """
    flops = speed_run.workload().training_flops_per_sample
    cells = {planned.cell.digest: planned for planned in journal.cells}
    found: list[tuple[bool, float, PlannedCell]] = []
    for result in summary.results:
        measured, planned = result.measurement, cells.get(result.cell.digest)
        if measured and planned:
            samples_per_second = figures.samples_per_second(measured, result.cell.batch_size)
            rate = samples_per_second * planned.workload.training_flops_per_sample / flops
            found.append((result.cell.workload == speed_run.WORKLOAD, rate, planned))
    if not found:
        return None
    _, rate, best = max(found, key=lambda one: one[:2])
    return cell_of(best) if expected_seconds(rate) < OFFERED_SECONDS else None
