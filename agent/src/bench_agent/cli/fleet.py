"""``fleet``: the same run on several machines."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.live import Live

from bench_protocol.base import scheduler

from ..base.errors import UsageProblem
from ..base.names import unknown
from ..fleet import jobs
from ..fleet.coordinator import Fleet, Row
from ..output.console import console
from ..output.fleet_table import fleet_lines, show_fleet
from ..plan.plan import Selection, check_names
from ..plan.presets import like_named, preset_named
from .exits import Exit
from .options import LONGEST_SECONDS, Json, Like, PresetName, Server, choosing_cells
from .setup import print_json

PATIENCE_SECONDS = 600.0
# Options that only some fleets have, by the kind of job file; None: run by Dask.
USED_BY: dict[str | None, frozenset[str]] = {
    None: frozenset({"--patience-seconds", "--json"}),
    "slurm": frozenset({"--gpus"}),
    "kubernetes": frozenset({"--gpus", "--image", "--json"}),
}
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="A Dask scheduler: tls://HOST:PORT, or tcp:// on this machine.",
    ),
]
Emit = Annotated[
    str | None,
    typer.Option(
        "--emit",
        metavar="KIND",
        help="Print a job file instead: slurm (an array) or kubernetes (a Job).",
    ),
]
Machines = Annotated[
    int,
    typer.Option(
        "--machines",
        min=1,
        max=10_000,
        metavar="N",
        help="Start when N machines are connected; in a job file, the number of nodes.",
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        "--patience-seconds",
        min=0,
        max=LONGEST_SECONDS,
        metavar="SECONDS",
        help="Longest wait for machines, and for a lost worker to come back, 0 to "
        f"{LONGEST_SECONDS}. Default: {PATIENCE_SECONDS:g}.",
    ),
]
Image = Annotated[
    str | None,
    typer.Option(
        "--image",
        metavar="NAME",
        help="Container image, for kubernetes. Default: "
        f"{jobs.IMAGE.removesuffix(':latest')}, the latest.",
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option("--gpus", min=0, metavar="N", help="GPUs per node, in a job file. Default: 0."),
]


@choosing_cells
def fleet(
    selection: Selection,
    preset: PresetName = None,
    like: Like = None,
    server: Server = None,
    scheduler_address: Scheduler = None,
    emit: Emit = None,
    machines: Machines = 1,
    patience_seconds: Patience = None,
    image: Image = None,
    gpus: Gpus = None,
    as_json: Json = False,
) -> None:
    """Run the same measurements on several machines. Each measures what it can, signs with its own
    key and posts by itself."""
    if preset and like:
        raise UsageProblem("--preset and --like exclude each other: give one of them")
    check_names(selection)
    _ = like_named(like) if like else preset_named(preset or "quick")
    arguments = run_arguments(selection, preset, like, server)
    if (scheduler_address is None) == (emit is None):
        raise UsageProblem("give either --scheduler ADDRESS or --emit slurm|kubernetes")
    if emit is not None and emit not in USED_BY:
        raise UsageProblem(unknown("kind of job file", emit, [kind for kind in USED_BY if kind]))
    given = {"--patience-seconds": patience_seconds, "--image": image, "--gpus": gpus}
    given["--json"] = as_json or None
    for option in (name for name, value in given.items() if value is not None):
        if option not in USED_BY[emit]:
            where = f"--emit {emit}" if emit else "--scheduler"
            raise UsageProblem(f"{option} has no effect with {where}: leave it out")
    if emit == "slurm":
        typer.echo(jobs.slurm(arguments, machines, server, gpus or 0), nl=False)
    elif emit == "kubernetes":
        job = jobs.kubernetes(arguments, machines, server, image or jobs.IMAGE, gpus or 0)
        typer.echo(json.dumps(job, indent=2))
    else:
        assert scheduler_address is not None  # noqa: S101 - checked above, for the type checker
        patience = PATIENCE_SECONDS if patience_seconds is None else patience_seconds
        rows = _measure(scheduler_address, arguments, machines, patience, as_json)
        if any(row.state != "done" for row in rows):
            raise typer.Exit(Exit.SOME_FAILED)


def run_arguments(
    selection: Selection, preset: str | None, like: str | None, server: str | None
) -> list[str]:
    """The arguments of ``bench-agent run`` that select the same."""
    words = [("--preset", preset), ("--like", like), ("--server", server)]
    words += [("--workload", name) for name in selection.workloads]
    words += [("--framework", name) for name in selection.frameworks]
    words += [("--device", name) for name in selection.devices]
    words += [("--recipe", name) for name in selection.recipes]
    words += [("--batch-size", str(size)) for size in selection.batch_sizes]
    words += [("--precision", name) for name in selection.precisions]
    if selection.data != "generated":
        words.append(("--data", selection.data))
    if selection.repeats is not None:
        words.append(("--repeats", str(selection.repeats)))
    if selection.budget_seconds is not None:
        words.append(("--budget-seconds", str(selection.budget_seconds)))
    return [word for option, value in words if value is not None for word in (option, value)]


def _measure(
    address: str, arguments: Sequence[str], machines: int, patience_seconds: float, as_json: bool
) -> list[Row]:
    try:
        client = scheduler.connect(address, "./agent[fleet]")
    except scheduler.SchedulerProblem as problem:
        raise UsageProblem(str(problem)) from problem
    shown = console(stderr=as_json)
    live = Live(console=shown, transient=True, refresh_per_second=4)
    try:
        if shown.is_terminal:
            live.start()
        fleet_run = Fleet(
            client,
            arguments,
            machines,
            patience_seconds,
            lambda rows: live.update(fleet_lines(rows, shown.width)),
        )
        try:
            rows = fleet_run.run()
        except KeyboardInterrupt:
            fleet_run.stop()
            raise
    finally:
        live.stop()
        client.close()
    if as_json:
        print_json({"fleet": fleet_run.id, "machines": [_document(row) for row in rows]})
    else:
        show_fleet(shown, rows)
    return rows


def _document(row: Row) -> dict[str, object]:
    left_out = ("lost_at", "address")
    return {name: value for name, value in asdict(row).items() if name not in left_out}
