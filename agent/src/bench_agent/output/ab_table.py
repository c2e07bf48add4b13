"""Show A against B: progress and table for people, a JSON document for programs."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any

from rich.console import Console
from rich.status import Status

from bench_protocol import doubt_text
from bench_protocol import format as people
from bench_protocol.comparison import SpeedVerdict
from bench_protocol.result import Warn

from ..base.messages import WorkerEvent
from ..run.ab import Pair, Side

Document = dict[str, Any]
# An interval whose ends differ by more than this ratio hides relevant differences.
WIDE = 1.1


class AbDisplay:
    """Prints one line per pair, and progress at a terminal; a context manager."""

    def __init__(self, console: Console, a: Side, b: Side, count: int) -> None:
        self._console, self._count, self._done = console, count, 0
        self._status = Status("", console=console)
        self._estimate = count * (a.planned.estimate_seconds + b.planned.estimate_seconds)
        self._began = time.monotonic()
        for side in (a, b):
            console.print(f"{side.name}: {side.cell}", markup=False, soft_wrap=True)
        if (a.cell, a.command) == (b.cell, b.command):
            console.print("A and B are equal: any difference comes from the machine")
        pairs = f"{count} pair{'s' * (count != 1)}"
        console.print(f"{pairs}, about {people.rough(self._estimate)}", highlight=False)

    def __enter__(self) -> "AbDisplay":
        self._status.start()
        self._show()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def heard(self, message: WorkerEvent) -> None:
        self._show()

    def finished(self, pair: Pair) -> None:
        """Print a pair's speeds and the remaining time."""
        self._done += 1
        more = self._done < self._count
        left = f"; about {people.rough(self._left_seconds())} left" if more else ""
        self._console.print(
            f"[{self._done}/{self._count}] A {people.rate(pair.a)}, B {people.rate(pair.b)} "
            f"samples/s: {people.ratio(pair.b / pair.a)}{left}",
            markup=False,
            highlight=False,
        )
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
    """Both sides with every run, the speed of B divided by that of A, and the warnings.

    Args:
        before: warnings about the machine before the first run.
    """
    speeds = {"a": [pair.a for pair in done], "b": [pair.b for pair in done]}
    runs = 2 * len(done)
    of_runs = (doubts_of_run for pair in done for doubts_of_run in pair.doubts)
    return {
        **{
            name: {
                "cell": side.cell.model_dump(mode="json"),
                "command": list(side.command),
                "samples_per_second": speeds[name],
            }
            for name, side in (("a", a), ("b", b))
        },
        "pairs": len(done),
        **{("verdict" if key == "words" else key): value for key, value in asdict(verdict).items()},
        "warnings": [
            *({"code": doubt.code, "words": doubt_text.words(doubt)} for doubt in before),
            *(
                {"code": worst.code, "words": _of_runs(count, runs, side, worst)}
                for count, side, worst in doubt_text.worst_of_each(of_runs)
            ),
        ],
    }


def _of_runs(count: int, runs: int, side: str, worst: Warn) -> str:
    which = f"{side}{', the worst of them' if count > 1 else ''}"
    return f"{count} of {runs} runs: {doubt_text.words(worst)} ({which})"


def lines(answer: Document) -> list[str]:
    """The document as lines for people."""
    speed = {name: geometric_mean(answer[name]["samples_per_second"]) for name in ("a", "b")}
    interval, wide = "", []
    if answer["low"] is not None:
        low, high = people.ratio(answer["low"]), people.ratio(answer["high"])
        interval = f" (95 % CI {low} to {high})"
        if answer["high"] / answer["low"] > WIDE:
            wide = ["The interval is wide: more pairs (--repeats), or an idle machine, narrow it"]
    return [
        f"A {people.rate(speed['a'])}, B {people.rate(speed['b'])} samples/s; "
        f"B over A: {people.ratio(answer['speed_up'])}{interval}",
        *(f"Warning, {warning['words']}" for warning in answer["warnings"]),
        f"B against A: {answer['verdict']}",
        *wide,
    ]
