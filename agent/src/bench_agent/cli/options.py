"""What commands share: exit codes, options, and how a command starts and stops."""

import functools
import inspect
import json
import os
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ..base.errors import HomeProblem

if TYPE_CHECKING:
    from ..base.home import Home
    from ..base.messages import Probe
    from ..remote.client import Client


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
    str | None,
    typer.Option("--preset", help="How much to run: smoke, quick (the default), standard or full."),
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like",
        help="Measure what others published: tensorflow-metal-experiments or m2-max-article.",
    ),
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
DataOption = Annotated[
    str,
    typer.Option(
        "--data", help="generated (needs no files) or real (bench-agent data fetch brings it)."
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats",
        min=1,
        max=1000,
        help="How often each cell is measured, each time in a process of its own.",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option("--budget-seconds", min=0.5, help="Seconds of timing per repeat."),
]


def _choose(
    workload: Workloads = [],
    framework: Frameworks = [],
    device: Devices = [],
    recipe: Recipes = [],
    batch_size: Batches = [],
    precision: Precisions = [],
    data: DataOption = "generated",
    repeats: Repeats = None,
    budget_seconds: Budget = None,
) -> Any:
    from ..plan.plan import Selection

    return Selection(
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


def choosing_cells(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that choose cells; it gets them as one ``selection``."""
    own = inspect.signature(command).parameters
    choice = inspect.signature(_choose).parameters

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in choice}
        command(selection=_choose(**chosen), **given)

    shown: list[inspect.Parameter] = []
    for name, parameter in own.items():
        shown += choice.values() if name == "selection" else [parameter]
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [parameter.replace(kind=keyword) for parameter in shown]
    with_options.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    with_options.__annotations__ = {option.name: option.annotation for option in options}
    return with_options


def open_home() -> "Home":
    """The agent's folder. Raises HomeProblem where something else is in its place."""
    from ..base.home import find_home

    home = find_home()
    there = next(path for path in (home.root, *home.root.parents) if path.exists())
    if not there.is_dir():
        raise HomeProblem(f"{there} is not a folder; choose another one with BENCH_HOME")
    return home


def open_client(server: str | None, home: "Home") -> "Client":
    """A client for the server that was named; without one the command stops."""
    from ..base.keys import load_or_create_key
    from ..remote.client import Client
    from ..remote.connection import token_for

    if not server:
        stop(Exit.WRONG_USAGE, "no server: give --server URL or set BENCH_SERVER")
    token = token_for(server, os.environ, named=True)
    return Client(server, load_or_create_key(home), home, token=token)


def open_reader(server: str, home: "Home") -> "Client":
    """A client that signs nothing, so that looking makes no key."""
    from ..remote.client import Client
    from ..remote.connection import token_for

    return Client(server, None, home, token=token_for(server, os.environ, named=False))


def probe_frameworks(frameworks: tuple[str, ...] = ()) -> "dict[str, Probe]":
    """What each framework says of itself and its devices, each asked in a process of its own."""
    from ..run.probe import probe_all

    return probe_all(open_home().logs, frameworks)


def print_json(document: Any) -> None:
    """Print a document for programs."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def ask(question: str, yes: bool) -> None:
    """Go on where ``--yes`` or somebody at a terminal says so; else the command stops."""
    if yes:
        return
    if not typer.get_text_stream("stdin").isatty():
        stop(Exit.WRONG_USAGE, f"{question} Say --yes to agree, or answer at a terminal.")
    typer.confirm(question, abort=True, err=True)


def stop(code: Exit, message: str) -> NoReturn:
    """End a command with one line for people and the code for scripts."""
    typer.echo(message, err=True)
    raise typer.Exit(code)
