"""``ab``: compare two set-ups, or two environments, in turns."""

from collections.abc import Iterable
from typing import Annotated

from bench_protocol.base.format import plural
from bench_protocol.payload import doubts

from .. import data
from ..base.home import Home
from ..base.terminal import write, write_json
from ..doctor.table import refuse_unfit
from ..machine import read_machine
from ..output.ab_table import AbDisplay, document, show_answer
from ..output.console import WARNING, complain, console
from ..output.documents import failure, short_name
from ..plan import estimates
from ..plan.plan import Selection, check_names
from ..run import idle_gate
from ..run.ab import PAIRS, Choice, Pair, RunFailed, Side, choose, compare_sides, pairs, side
from ..run.forms import Forms
from ..run.patience import limits_in_turns, place_of, why_silent
from ..run.probe import probe_with
from ..run.run_lock import alone
from ..run.self_test import SelfTests
from .exits import Exit, stop
from .options import EXPERT, Json, choosing_cells, option
from .setup import open_home, probe_frameworks

SideA = Annotated[
    list[str],
    option(
        "--a",
        "KEY=VALUE",
        "Side A: an option of a set-up (recipe=naive) or an environment variable "
        "(OMP_NUM_THREADS=1).",
    ),
]
SideB = Annotated[list[str], option("--b", "KEY=VALUE", "Side B.")]
PythonA = Annotated[
    str | None,
    option("--a-python", "PATH", "Interpreter of side A, with bench-agent in it.", panel=EXPERT),
]
PythonB = Annotated[
    str | None, option("--b-python", "PATH", "Interpreter of side B.", panel=EXPERT)
]


@choosing_cells
def ab(
    selection: Selection,
    a: SideA = [],
    b: SideB = [],
    a_python: PythonA = None,
    b_python: PythonB = None,
    as_json: Json = False,
) -> None:
    """Compare two set-ups or two environments: a ratio with its interval.

    Each pair is two fresh processes that take turns: a block of A, then a block of B. Filters such
    as --workload apply to both sides. The recipe is tuned unless --a, --b or --recipe names
    another. Here --repeats is the number of pairs (default: 8) and --budget-seconds the timed
    seconds of each process (default: 3). Nothing is stored or sent.
    """
    home = open_home()
    refuse_unfit(home)
    chosen_a = choose(selection, a, a_python)
    chosen_b = choose(selection, b, b_python)
    side_a, side_b = _side("A", chosen_a, home), _side("B", chosen_b, home)
    count = selection.repeats or PAIRS
    done: list[Pair] = []
    times, sides = estimates.load(home.measured_times), (side_a.planned, side_b.planned)
    for reason in dict.fromkeys(why_silent(place_of(planned), times) for planned in sides):
        if reason:
            complain(reason, WARNING)
    before = doubts.of_conditions(idle_gate.look(side_a.cell.device))
    try:
        shown = console(stderr=as_json)
        with alone(home):
            _require_self_tests(home, ((chosen_a, side_a), (chosen_b, side_b)))
        with alone(home), AbDisplay(shown, side_a, side_b, count) as display:
            runs = pairs(
                side_a,
                side_b,
                count,
                home.logs / "ab",
                display.heard,
                limits=limits_in_turns(sides, times),
                choose_form=Forms(home, lambda line: write(line, err=True)).choice,
            )
            for pair in runs:
                done.append(pair)
                display.finished(pair)
    except RunFailed as error:
        failed = f"side {error.side.name} ({short_name(error.side.cell)}) failed"
        stop(Exit.SOME_FAILED, f"{failed}: {failure(error.failed)}. Its log:\n  {error.log}")
    except KeyboardInterrupt:
        stop(
            Exit.INTERRUPTED,
            f"interrupted after {len(done)} of {plural(count, 'pair')}; nothing is stored",
        )
    answer = document(side_a, side_b, done, compare_sides(done), before)
    if as_json:
        write_json(answer)
    else:
        show_answer(shown, answer)


def _require_self_tests(home: Home, sides: Iterable[tuple[Choice, Side]]) -> None:
    """Stop where a side's device fails its self-test: its times are no times of training."""
    tests = SelfTests(home, read_machine(home), lambda line: write(line, err=True))
    for choice, chosen in sides:
        place, precision = place_of(chosen.planned), chosen.cell.precision
        if choice.python:
            place = place._replace(python=choice.python)
        outcome = tests.outcome(place, precision)
        if outcome.problems:
            what = f"side {chosen.name}: {place} in {precision} fails its self-test"
            stop(Exit.SOME_FAILED, f"{what} and is not measured: {outcome.words}")


def _side(name: str, choice: Choice, home: Home) -> Side:
    check_names(choice.selection)
    frameworks = choice.selection.frameworks
    if choice.python:
        answers = probe_with(home.logs, choice.command(), frameworks)
    else:
        answers = probe_frameworks(frameworks, choice.settings)
    chosen = side(name, choice, answers, estimates.load(home.measured_times))
    if chosen.cell.data == "real":
        data.require({chosen.planned.workload.data_set.name: None})
    return chosen
