"""``bench-agent``: the commands. Each is a few lines over the modules that do the work.

Imports stand inside the commands, so that ``--help`` answers at once.
"""

import json
import os
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from .problems import HomeProblem, UsageProblem

if TYPE_CHECKING:
    from .job import Probe
    from .plan import Plan, Selection

app = typer.Typer(
    name="bench-agent",
    help="Measure how fast this machine trains neural networks; sign and share the results.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Exit(IntEnum):
    """Exit codes that scripts hold on to."""

    DONE = 0
    SOME_FAILED = 1
    WRONG_USAGE = 2
    SERVER_UNREACHABLE = 3
    INTERRUPTED = 130


Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Server = Annotated[
    str | None,
    typer.Option(
        "--server", envvar="BENCH_SERVER", help="Server to post to; without one nothing is sent."
    ),
]
PresetName = Annotated[
    Literal["smoke", "quick", "standard", "full"],
    typer.Option("--preset", help="How much of the matrix to run."),
]
Workloads = Annotated[list[str], typer.Option("--workload", help="Only this workload; repeatable.")]
Frameworks = Annotated[
    list[str], typer.Option("--framework", help="Only this framework; repeatable.")
]
Devices = Annotated[
    list[str], typer.Option("--device", help="Only metal, cuda, cpu or cuda:1; repeatable.")
]
Recipes = Annotated[
    list[str], typer.Option("--recipe", help="Only naive, pipeline or tuned; repeatable.")
]
Batches = Annotated[
    list[int], typer.Option("--batch-size", min=1, help="This batch size; repeatable.")
]
Precisions = Annotated[
    list[str],
    typer.Option("--precision", help="float32, tf32, mixed_float16, mixed_bfloat16; repeatable."),
]
DataOption = Annotated[str, typer.Option("--data", help="generated; real data comes later.")]
Repeats = Annotated[
    int | None, typer.Option("--repeats", min=1, max=1000, help="Processes per cell.")
]
Budget = Annotated[
    float | None,
    typer.Option("--budget-seconds", min=0.5, help="Seconds of timing per repeat."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

LONG_PLAN_SECONDS = 24 * 3600


@app.command()
def devices(as_json: Json = False) -> None:
    """Show this machine and the devices each framework sees."""
    from . import overview
    from .machine import read_machine

    document = overview.devices_document(read_machine(_home()), _probe_all())
    if as_json:
        _print_json(document)
    else:
        overview.print_devices(document)


@app.command()
def plan(
    preset: PresetName = "quick",
    workload: Workloads = [],
    framework: Frameworks = [],
    device: Devices = [],
    recipe: Recipes = [],
    batch_size: Batches = [],
    precision: Precisions = [],
    data: DataOption = "generated",
    repeats: Repeats = None,
    budget_seconds: Budget = None,
    as_json: Json = False,
) -> None:
    """Show every cell a run would measure, how long it takes, and what is left out and why."""
    from . import overview
    from .plan import Selection

    selection = Selection(
        workloads=tuple(workload),
        frameworks=tuple(framework),
        devices=tuple(device),
        recipes=tuple(recipe),
        batch_sizes=tuple(batch_size),
        precisions=tuple(precision),
        repeats=repeats,
        budget_seconds=budget_seconds,
        data=data,
    )
    made = _make_plan(preset, selection)
    if as_json:
        _print_json(overview.plan_document(made))
    else:
        overview.print_plan(made)


@app.command()
def run(
    preset: PresetName = "quick",
    workload: Workloads = [],
    framework: Frameworks = [],
    device: Devices = [],
    recipe: Recipes = [],
    batch_size: Batches = [],
    precision: Precisions = [],
    data: DataOption = "generated",
    repeats: Repeats = None,
    budget_seconds: Budget = None,
    server: Server = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Measure, sign and keep the results; with a server, post them."""
    from rich.console import Console

    from bench_protocol import format as people
    from bench_protocol.catalogue import CATALOGUE

    from .display import Display, summary_table
    from .overview import summary_document
    from .plan import Selection
    from .run import run_plan

    selection = Selection(
        workloads=tuple(workload),
        frameworks=tuple(framework),
        devices=tuple(device),
        recipes=tuple(recipe),
        batch_sizes=tuple(batch_size),
        precisions=tuple(precision),
        repeats=repeats,
        budget_seconds=budget_seconds,
        data=data,
    )
    made = _make_plan(preset, selection)
    if not made.cells:
        _stop(Exit.WRONG_USAGE, "nothing to run; bench-agent plan shows what is left out and why")
    if made.estimate_seconds > LONG_PLAN_SECONDS and not yes:
        length = people.seconds(made.estimate_seconds)
        typer.confirm(f"This takes about {length}. Go on?", abort=True, err=True)
    console = Console(stderr=as_json)
    with Display(console) as display:
        summary = run_plan(made, _home(), server, display)
    if as_json:
        _print_json(summary_document(summary))
    else:
        samples = {workload.name: workload.data_set.train_samples for workload in CATALOGUE}
        console.print(summary_table(summary.results, samples))
    if summary.server_unreachable:
        _stop(Exit.SERVER_UNREACHABLE, "results are safe in the outbox: bench-agent submit")
    if summary.failed or summary.refused:
        raise typer.Exit(Exit.SOME_FAILED)


@app.command()
def conformance(
    workload: Workloads = [],
    framework: Frameworks = [],
    device: Devices = [],
    recipe: Recipes = [],
    precision: Precisions = [],
    as_json: Json = False,
) -> None:
    """Check that every framework trains the same: each step's loss against the reference."""
    from . import conform
    from .plan import Selection

    selection = Selection(
        workloads=tuple(workload),
        frameworks=tuple(framework),
        devices=tuple(device),
        recipes=tuple(recipe),
        precisions=tuple(precision),
    )
    made = _make_plan("quick", selection)
    if not made.cells:
        _stop(Exit.WRONG_USAGE, "nothing to check; bench-agent plan shows what is left out and why")
    checked = []
    for one in conform.check(made, _home().logs):
        checked.append(one)
        if not as_json:
            typer.echo(conform.line(one))
    if as_json:
        _print_json(conform.document(checked, made))
    else:
        typer.echo(conform.summary(checked, made))
    if any(one.failed for one in checked):
        raise typer.Exit(Exit.SOME_FAILED)


@app.command()
def submit(server: Server = None, as_json: Json = False) -> None:
    """Post the results that wait in the outbox, each once."""
    from .client import ServerUnreachable
    from .keys import load_or_create_key
    from .machine import read_machine
    from .outbox import Outbox

    home = _home()
    outbox = Outbox(home.outbox)
    sent: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    client = _client(server, load_or_create_key(home))
    try:
        for delivery in client.submit(outbox, read_machine(home).machine_hash):
            (sent if delivery.state == "sent" else refused).append(delivery.answer)
    except ServerUnreachable as error:
        _stop(Exit.SERVER_UNREACHABLE, f"{error}; {len(sent)} sent, the rest waits in the outbox")
    finally:
        client.close()
    if as_json:
        _print_json({"sent": sent, "refused": refused})
    else:
        typer.echo(f"{len(sent)} sent, {len(refused)} refused")
        for problem in refused:
            typer.echo(f"refused: {problem.get('detail', 'no reason given')}")
    if refused:
        raise typer.Exit(Exit.SOME_FAILED)


@app.command()
def status(as_json: Json = False) -> None:
    """Show what waits in the outbox, what was sent and what was refused."""
    from . import overview
    from .outbox import Outbox

    home = _home()
    if as_json:
        _print_json(overview.status_document(home, Outbox(home.outbox)))
    else:
        overview.print_status(home, Outbox(home.outbox))


@app.command()
def enroll(
    server: Server = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Display name; can be changed, is never signed.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make this machine's key known to a server."""
    from .client import ServerRefused, ServerUnreachable
    from .keys import load_or_create_key
    from .machine import read_machine

    home = _home()
    client = _client(server, load_or_create_key(home))
    try:
        answer = client.enroll(read_machine(home).machine_hash, name)
    except ServerUnreachable as error:
        _stop(Exit.SERVER_UNREACHABLE, str(error))
    except ServerRefused as error:
        _stop(Exit.SOME_FAILED, str(error))
    finally:
        client.close()
    if as_json:
        _print_json(answer)
    else:
        typer.echo(f"key {answer.get('key_id')} is enrolled at {client.server}")


def main() -> None:
    """Run the command line; problems a person can mend end in one line, not in a traceback."""
    try:
        app()
    except UsageProblem as problem:
        _leave(Exit.WRONG_USAGE, str(problem))
    except HomeProblem as problem:
        _leave(Exit.SOME_FAILED, str(problem))
    except KeyboardInterrupt:
        _leave(Exit.INTERRUPTED, "interrupted; finished results are in the outbox")


def _home() -> Any:
    from .home import find_home

    return find_home()


def _client(server: str | None, key: Any) -> Any:
    from .client import Client

    if not server:
        _stop(Exit.WRONG_USAGE, "no server: give --server URL or set BENCH_SERVER")
    return Client(server, key)


def _probe_all(frameworks: tuple[str, ...] = ()) -> "dict[str, Probe]":
    from .probes import probe_all

    return probe_all(_home().logs, frameworks)


def _make_plan(preset: str, selection: "Selection") -> "Plan":
    from .plan import check_names, make_plan
    from .presets import PRESETS

    check_names(selection)
    return make_plan(PRESETS[preset], selection, _probe_all(selection.frameworks))


def _print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _stop(code: Exit, message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)


def _leave(code: Exit, message: str) -> NoReturn:
    sys.stderr.write(message + os.linesep)
    sys.exit(code)
