"""``ab``: two cells, or two environments, in turns."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Exit, Json, choosing_cells, open_home, print_json, stop

if TYPE_CHECKING:
    from ..base.home import Home
    from ..plan.plan import Selection
    from ..run.ab import Choice, Side

SideA = Annotated[
    list[str],
    typer.Option(
        "--a", help="key=value of side A: recipe=naive, or a variable as OMP_NUM_THREADS=1."
    ),
]
SideB = Annotated[list[str], typer.Option("--b", help="key=value of side B.")]
PythonA = Annotated[
    str | None, typer.Option("--a-python", help="Interpreter of side A, with bench-agent in it.")
]
PythonB = Annotated[str | None, typer.Option("--b-python", help="Interpreter of side B.")]
WholeRuns = Annotated[
    bool,
    typer.Option(
        "--whole-runs", help="One run after the other, where both do not fit into memory together."
    ),
]


@choosing_cells
def ab(
    selection: "Selection",
    a: SideA = [],
    b: SideB = [],
    a_python: PythonA = None,
    b_python: PythonB = None,
    whole_runs: WholeRuns = False,
    as_json: Json = False,
) -> None:
    """Compare two cells or two environments in turns: a ratio, its interval, a verdict.

    Pairs of fresh processes, a block of one beside a block of the other. The usual filters hold
    for both sides; what --a or --b does not name is as in a run, the recipe tuned. --repeats: how
    many pairs (8). --budget-seconds: how long each process is timed (3). Nothing is kept or sent.
    """
    from rich.console import Console

    from bench_protocol import doubts

    from ..doctor.unfit import refuse_unfit
    from ..output.ab_table import AbDisplay, document, lines
    from ..output.live import failure
    from ..run import ab as compare
    from ..run import idle_gate
    from ..run.run_lock import alone

    home = open_home()
    refuse_unfit(home)
    chosen_a = compare.choose(selection, a, a_python or sys.executable)
    chosen_b = compare.choose(selection, b, b_python or sys.executable)
    side_a, side_b = _side("A", chosen_a, home), _side("B", chosen_b, home)
    count = selection.repeats or compare.PAIRS
    done: list[compare.Pair] = []
    before = doubts.of_conditions(idle_gate.look(side_a.cell.device))
    try:
        console = Console(stderr=as_json)
        with alone(home), AbDisplay(console, side_a, side_b, count) as display:
            runs = compare.pairs(
                side_a, side_b, count, home.logs / "ab", display.heard, whole_runs=whole_runs
            )
            for pair in runs:
                done.append(pair)
                display.finished(pair)
    except compare.RunFailed as error:
        message = f"side {error.side.name} ({error.side.cell}) failed: {failure(error.failed)}"
        stop(Exit.SOME_FAILED, f"{message}; its log is {error.log}")
    except KeyboardInterrupt:
        stop(Exit.INTERRUPTED, f"interrupted after {len(done)} of {count} pairs; nothing is kept")
    answer = document(side_a, side_b, done, compare.judge(done), before)
    if as_json:
        print_json(answer)
    else:
        for line in lines(answer):
            typer.echo(line)


def _side(name: str, choice: "Choice", home: "Home") -> "Side":
    from .. import data
    from ..plan import estimates
    from ..plan.plan import check_names
    from ..run import ab, probe

    check_names(choice.selection)
    answers = probe.probe_all(home.logs, choice.selection.frameworks, choice.command)
    side = ab.side(name, choice, answers, estimates.load(home.paces))
    if side.cell.data == "real":
        data.require({side.planned.workload.data_set.name: None})
    return side
