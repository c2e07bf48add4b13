"""Options that several commands share, among them the filters that choose cells."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..plan.plan import Selection

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
    list[str],
    typer.Option("--device", help="Only metal, cuda, cpu, cuda:1 or cuda:all; repeatable."),
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
        "--data", help="generated (needs no files) or real (bench-agent data fetch downloads it)."
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
    """Give a command the options that choose cells; it gets them as one ``selection``."""
    parameters = inspect.signature(command).parameters
    filters = inspect.signature(_choose).parameters

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
