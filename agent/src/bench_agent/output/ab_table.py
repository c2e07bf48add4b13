"""Show A against B: progress and table for people, a JSON document for programs."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from statistics import geometric_mean

from rich.console import Console
from rich.status import Status

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.payload import doubt_text
from bench_protocol.payload.result import Warn
from bench_protocol.statistics.comparison import SpeedVerdict

from ..base.messages import WorkerEvent
from ..run.ab import Pair, Side
from .console import GOOD, WARNING, say
from .documents import Document, short_name
from .report.remarks import fix_of, worst_lines

# An interval whose ends differ by more than this ratio hides relevant differences.
WIDE = 1.1
# Members of a verdict by the names that the server's API has for them.
NAMES = {"low": "speed_up_low", "high": "speed_up_high", "kind": "verdict_kind", "words": "verdict"}


class AbDisplay:
    """Prints one line per pair, and progress at a terminal; a context manager."""

    def __init__(self, console: Console, a: Side, b: Side, count: int) -> None:
        self._console, self._count, self._done = console, count, 0
        self._workload = a.cell.workload
        self._status = Status("", console=console)
        self._estimate = count * (a.planned.estimate_seconds + b.planned.estimate_seconds)
        self._began = time.monotonic()
        for side in (a, b):
            say(console, f"{side.name}: {short_name(side.cell)}")
        if (a.cell, a.command) == (b.cell, b.command):
            say(console, "A and B are equal: any difference comes from the machine")
        say(console, f"{people.plural(count, 'pair')}, about {people.rough(self._estimate)}")

    def __enter__(self) -> "AbDisplay":
        self._status.start()
        self._show()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def heard(self, message: WorkerEvent) -> None:
        self._show()

    def finished(self, pair: Pair) -> None:
        self._done += 1
        more = self._done < self._count
        left = f"; about {people.rough(self._left_seconds())} left" if more else ""
        a, b = speeds.number(pair.a, self._workload), speeds.words(pair.b, self._workload)
        ratio = people.ratio(pair.b / pair.a)
        say(self._console, f"[{self._done}/{self._count}] A {a}, B {b}: {ratio}{left}")
        self._show()

    def _left_seconds(self) -> float:
        """Estimate from the pairs so far; before the first, from the plan."""
        elapsed = time.monotonic() - self._began
        if not self._done:
            return max(0.0, self._estimate - elapsed)
        return elapsed / self._done * (self._count - self._done)

    def _show(self) -> None:
        left = people.rough(self._left_seconds())
        self._status.update(f"pair {self._done + 1} of {self._count}, about {left} left")


def document(
    a: Side, b: Side, done: list[Pair], verdict: SpeedVerdict, before: Sequence[Warn] = ()
) -> Document:
    """Both sides with every run, the speed of B divided by that of A, and the warnings. ``before``:
    warnings about the machine before the first run."""
    rates = {"a": [pair.a for pair in done], "b": [pair.b for pair in done]}
    of_runs = [doubts_of_run for pair in done for doubts_of_run in pair.doubts]
    words = worst_lines(of_runs, f"{2 * len(done)} runs")
    worst = doubt_text.worst_of_each(of_runs)
    return {
        **{
            name: {
                "cell": side.cell.model_dump(mode="json"),
                "command": list(side.command),
                "unit": speeds.unit(side.cell.workload),
                "samples_per_second": rates[name],
            }
            for name, side in (("a", a), ("b", b))
        },
        "pairs": len(done),
        **{NAMES.get(key, key): value for key, value in asdict(verdict).items()},
        "warnings": [
            *(
                {"code": doubt.code, "words": f"{doubt_text.words(doubt)}{fix_of(doubt)}"}
                for doubt in before
            ),
            *(
                {"code": warn.code, "words": line}
                for (_, _, warn), line in zip(worst, words, strict=True)
            ),
        ],
    }


def show_answer(console: Console, answer: Document) -> None:
    """Print the document for people: each kind of warning once, then the verdict."""
    for warning in answer["warnings"]:
        say(console, f"Warning: {warning['words']}", WARNING)
    low, high = answer["speed_up_low"], answer["speed_up_high"]
    if low is not None and high / low > WIDE:
        say(console, "The interval is wide: more pairs (--repeats) or an idle machine narrow it.")
    good = answer["verdict_kind"] in ("faster", "slower")
    say(console, verdict_line(answer), GOOD if good else "")


def verdict_line(answer: Document) -> str:
    """``B is 1.79 times as fast as A (95 % CI 1.59 to 2.01): 2,140 against 1,195 samples/s``."""
    workload = answer["a"]["cell"]["workload"]
    a, b = (geometric_mean(answer[side]["samples_per_second"]) for side in ("a", "b"))
    both = f"{speeds.number(b, workload)} against {speeds.words(a, workload)}"
    ratio, low, high = answer["speed_up"], answer["speed_up_low"], answer["speed_up_high"]
    finding = f"B {people.faster_than(ratio)} A"
    if low is None:
        return f"{finding}; {answer['verdict']} ({both})"
    if answer["verdict_kind"] == "no_difference":
        return (
            "No clear difference: the speed of B is "
            f"{people.interval(low, high, people.times)} times that of A (95 % CI): {both}"
        )
    return f"{finding} (95 % CI {people.bounds(ratio, low, high)}): {both}"
