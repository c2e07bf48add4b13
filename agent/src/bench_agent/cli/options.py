"""Options that several commands share, among them the filters that choose cells."""

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any

import typer

from bench_protocol.catalogue.catalogue import CATALOGUE

from .. import engines
from ..base.precisions import ALL_PRECISIONS
from ..plan.plan import Selection
from ..plan.presets import ALL_RECIPES

CELLS, LENGTH, EXPERT = "What is measured", "How long", "For scripts and experts"
WORKLOADS = ", ".join(workload.name for workload in CATALOGUE)
FRAMEWORKS = ", ".join(engines.names())
LONGEST_SECONDS = 86_400  # a day


def option(flag: str, metavar: str, words: str, panel: str | None = None, **more: Any) -> Any:
    """An option that takes a value; ``panel``: its heading in the help."""
    return typer.Option(flag, metavar=metavar, help=words, rich_help_panel=panel, **more)


def server_option(words: str) -> Any:
    """The option that names a server, or BENCH_SERVER in its place."""
    return option("--server", "URL", words, envvar="BENCH_SERVER")


def group(words: str) -> typer.Typer:
    return typer.Typer(
        help=words, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown"
    )


Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Server = Annotated[str | None, server_option("Server to post to; without one nothing is sent.")]
# Option of a command that does nothing without a server.
NamedServer = Annotated[
    str | None, server_option("The server, named here or by the environment variable.")
]
PresetName = Annotated[
    str | None,
    option(
        "--preset",
        "NAME",
        "How much to run: smoke, quick (the default), classic, standard or full.",
        panel=LENGTH,
    ),
]
Like = Annotated[
    str | None,
    option(
        "--like",
        "NAME",
        "Measure what others published: tensorflow-metal-experiments or m2-max-article.",
        panel=CELLS,
    ),
]


def _cells(flag: str, metavar: str, words: str, least: int | None = None) -> Any:
    return option(flag, metavar, f"{words}. Repeatable.", panel=CELLS, min=least)


Workloads = Annotated[list[str], _cells("--workload", "NAME", f"One of {WORKLOADS}")]
Frameworks = Annotated[list[str], _cells("--framework", "NAME", f"One of {FRAMEWORKS}")]
Devices = Annotated[
    list[str],
    _cells(
        "--device", "NAME", "One of cpu, cuda, metal; with several GPUs also cuda:1 or cuda:all"
    ),
]
Recipes = Annotated[list[str], _cells("--recipe", "NAME", f"One of {', '.join(ALL_RECIPES)}")]
Batches = Annotated[list[int], _cells("--batch-size", "N", "Samples in a step", least=1)]
Precisions = Annotated[
    list[str], _cells("--precision", "NAME", f"One of {', '.join(ALL_PRECISIONS)}")
]
DataOption = Annotated[
    str,
    option(
        "--data",
        "KIND",
        "generated (needs no files) or real (bench-agent data fetch downloads it).",
        panel=CELLS,
    ),
]
Repeats = Annotated[
    int | None,
    option(
        "--repeats",
        "N",
        "How often each set-up is measured, each time in a process of its own; up to 1000.",
        panel=LENGTH,
        min=1,
        max=1000,
    ),
]
Budget = Annotated[
    float | None,
    option(
        "--budget-seconds",
        "SECONDS",
        f"Longest timed part of each repeat, 0.5 to {LONGEST_SECONDS}.",
        panel=LENGTH,
        min=0.5,
        max=LONGEST_SECONDS,
    ),
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
) -> Selection:
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
    """Give a command the options that choose cells and how long each is timed; it gets them as one
    ``selection``."""
    return _with_filters(command, frozenset())


def choosing_untimed_cells(command: Callable[..., None]) -> Callable[..., None]:
    """:func:`choosing_cells` for a command that times nothing."""
    return _with_filters(command, frozenset({"repeats", "budget_seconds"}))


def _with_filters(command: Callable[..., None], without: Collection[str]) -> Callable[..., None]:
    parameters = inspect.signature(command).parameters
    every = inspect.signature(_choose).parameters
    filters = {name: option for name, option in every.items() if name not in without}

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        chosen = {name: values.pop(name) for name in filters}
        command(selection=_choose(**chosen), **values)

    shown: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        shown += filters.values() if name == "selection" else [parameter]
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [parameter.replace(kind=keyword) for parameter in shown]
    with_options.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    with_options.__annotations__ = {option.name: option.annotation for option in options}
    return with_options
