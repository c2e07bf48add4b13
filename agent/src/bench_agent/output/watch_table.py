"""Show what a watch found: one sentence and a table for people, a JSON document for programs."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.text import Text

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload import differences
from bench_protocol.payload.differences import Difference
from bench_protocol.statistics.comparison import SpeedVerdict

from ..watch.due import Reason
from ..watch.moved import Direction, Finding
from ..watch.watch import Watched
from .console import FAILURE, GOOD, WARNING, say, show_table
from .live import failure
from .names import short_name

Document = dict[str, Any]
HEADINGS = ("workload and set-up", "runs", "before", "since", "verdict")
MOST_CAUSES = 2
MOST_LISTED = 8
# The worst first.
DIRECTIONS: tuple[Direction, ...] = ("failed", "slower", "faster")
STYLES = {"failed": FAILURE, "slower": WARNING, "faster": GOOD}
IN_A_ROW = (
    "These runs followed one another, so they share the state of the machine in that hour. Without "
    "--now each start measures once, and a verdict rests on runs of different days."
)


def document(watched: Watched) -> Document:
    """The sentence, and for each cell why it was due, its runs, its verdict and its changes."""
    return {
        "sentence": sentence(watched),
        "runs": len(watched.runs),
        "runs_needed": watched.schedule.needed,
        "not_idle": watched.not_idle,
        "interrupted": any(run.interrupted for run in watched.runs),
        "server_unreachable": any(run.server_unreachable for run in watched.runs),
        "moved": {
            direction: sum(finding.moved == direction for finding in watched.findings.values())
            for direction in DIRECTIONS
        },
        "cells": [_cell(watched, cell) for cell in watched.findings],
    }


def _cell(watched: Watched, cell: Cell) -> Document:
    finding, reason = watched.findings[cell], watched.reasons.get(cell)
    return {
        "cell": cell.model_dump(mode="json"),
        "cell_digest": cell.digest,
        "due": reason and _due_words(reason, watched),
        "state": finding.state,
        "moved": finding.moved,
        "runs_before": finding.before,
        "runs_since": finding.since,
        "runs_left_out": finding.left_out,
        "changed": [
            {"name": one.name, "before": one.before, "after": one.after} for one in finding.changed
        ],
        "samples_per_second_before": _rate(finding.ns_before),
        "samples_per_second_since": _rate(finding.ns_since),
        **_verdict(finding.verdict),
        "p_value": finding.p_value,
        "failure": finding.failed and failure(finding.failed),
        "changes": [
            {
                "run_id": change.run.run_id,
                "started": change.run.started,
                "new": change.new,
                **_verdict(change.verdict),
            }
            for change in finding.changes
        ],
    }


def _verdict(verdict: SpeedVerdict | None) -> Document:
    """The members that the server's API has for a verdict; each null without one."""
    return {
        "speed_up": verdict and verdict.speed_up,
        "speed_up_low": verdict and verdict.low,
        "speed_up_high": verdict and verdict.high,
        "verdict_kind": verdict and verdict.kind,
        "verdict": verdict and verdict.words,
    }


def _rate(ns_per_sample: float | None) -> float | None:
    return 1e9 / ns_per_sample if ns_per_sample else None


def show(console: Console, watched: Watched) -> None:
    """Print the sentence, then a row for each cell, what changed, and what follows."""
    worst = next((way for way in DIRECTIONS if _moved(watched, way)), None)
    say(console, sentence(watched), STYLES[worst] if worst else "")
    rows = [_row(watched, cell) for cell, f in watched.findings.items() if f.state != "no_runs"]
    if rows:
        show_table(console, HEADINGS, rows, right=HEADINGS[1:4])
    for line in _remarks(watched):
        say(console, line)


def _row(watched: Watched, cell: Cell) -> Sequence[str | Text]:
    finding = watched.findings[cell]
    style = STYLES[finding.moved] if finding.moved else ""
    speeds = (_rate(finding.ns_before), _rate(finding.ns_since))
    return [
        short_name(cell),
        f"{finding.before}+{finding.since}" if finding.before else f"{finding.since}",
        *(people.rate(rate) if rate else "" for rate in speeds),
        Text("; ".join(_row_words(finding, watched.schedule.needed)), style),
    ]


def _row_words(finding: Finding, needed: int) -> list[str]:
    words = [failure(finding.failed)] if finding.failed else []
    if finding.verdict:
        words.append(finding.verdict.words)
    elif finding.state == "open":
        words.append(f"too early to tell: {finding.since} of {needed} runs")
    else:
        words.append("no earlier runs to compare with")
    words += [
        f"{change.verdict.words} since {change.run.started[:10]}" for change in finding.changes
    ]
    return words


def _remarks(watched: Watched) -> list[str]:
    found = watched.findings.values()
    changed = dict.fromkeys(one for finding in found for one in _ordered(finding.changed))
    causes = [_words(one, watched) for one in list(changed)[:MOST_LISTED]]
    if len(changed) > MOST_LISTED:
        causes.append(f"and {len(changed) - MOST_LISTED} more")
    lines = [f"Changed: {', '.join(causes)}."] if causes else []
    if left_out := sum(finding.left_out for finding in found):
        lines.append(f"Not compared: {people.plural(left_out, 'disturbed or failed run')}.")
    if len(watched.runs) > 1:
        lines.append(IN_A_ROW)
    elif any(finding.state == "open" for finding in found):
        lines.append("The next start measures again; with --now it takes all missing runs at once.")
    return lines


def sentence(watched: Watched) -> str:
    """``fashion-mlp, torch cpu tuned takes 1.08 times as long (95 % CI 1.03 to 1.13) since torch
    2.9.0 became 2.10.0; 7 set-ups: no clear difference.``"""
    moved = [pair for way in DIRECTIONS for pair in _moved(watched, way)]
    parts = [_moved_words(*moved[0], watched)] if moved else []
    if len(moved) > 1:
        parts.append(f"{people.plural(len(moved) - 1, 'more set-up')} changed")
    if watched.not_idle:
        parts.append(f"the machine is not idle: {watched.not_idle}")
    elif not watched.reasons:
        parts.append(f"nothing is due: {_no_reason(watched)}")
    if watched.runs or watched.not_idle:
        parts += _others(watched)
    return f"{'; '.join(parts)}."


def _moved(watched: Watched, way: Direction) -> list[tuple[Cell, Finding]]:
    return [(cell, f) for cell, f in watched.findings.items() if f.moved == way]


def _moved_words(cell: Cell, finding: Finding, watched: Watched) -> str:
    name = short_name(cell)
    since = f" since {_causes(finding.changed, watched)}" if finding.changed else ""
    if finding.failed:
        return f"{name} has no figure: {failure(finding.failed)}{since}"
    verdict = finding.verdict
    if not (finding.new and verdict and verdict.kind == finding.moved):
        change = next(change for change in finding.changes if change.new)
        verdict, since = (
            change.verdict,
            f" since {change.run.started[:10]}, in the same environment",
        )
    return f"{name} {'is ' * (finding.moved == 'faster')}{verdict.words}{since}"


def _others(watched: Watched) -> list[str]:
    """The set-ups that did not move, in groups."""
    needed = watched.schedule.needed
    groups: list[tuple[Callable[[Finding], bool], Callable[[Finding], str]]] = [
        (lambda f: f.new, lambda f: f"{_plainly(f)} since {_causes(f.changed, watched)}"),
        (
            lambda f: f.state == "open",
            lambda f: (
                f"too early to tell, {f.since} of {needed} runs since {_causes(f.changed, watched)}"
            ),
        ),
        (
            lambda f: f.state in ("nothing_before", "no_runs") and f.since <= needed,
            lambda f: f"no earlier runs to compare with, {f.since} of {needed} runs",
        ),
        (lambda f: True, lambda f: "no new change"),
    ]
    left = [finding for finding in watched.findings.values() if not finding.moved]
    parts = []
    for belongs, words in groups:
        group = [finding for finding in left if belongs(finding)]
        left = [finding for finding in left if not belongs(finding)]
        by_words: dict[str, int] = {}
        for finding in group:
            by_words[words(finding)] = by_words.get(words(finding), 0) + 1
        parts += [f"{people.plural(count, 'set-up')}: {said}" for said, count in by_words.items()]
    return parts


def _plainly(finding: Finding) -> str:
    """A verdict of no difference, without its figures."""
    too_few = finding.verdict is None or finding.verdict.kind == "too_few_runs"
    return "too few runs to tell" if too_few else "no clear difference"


def _no_reason(watched: Watched) -> str:
    newest = max(watched.newest.values(), default="")
    return f"neither driver, system nor framework changed since the last run of {newest[:10]}"


def _due_words(reason: Reason, watched: Watched) -> str:
    """``torch 2.9.0 became 2.10.0``, ``2 of 5 runs``, ``last run 8 days ago``."""
    if reason.kind == "changed":
        return _causes(reason.changed, watched)
    if reason.kind == "age":
        return f"last run {_days(reason.age)} ago"
    return f"{reason.runs} of {watched.schedule.needed} runs"


def _days(age: timedelta | None) -> str:
    if age is None or age < timedelta(days=1):
        return people.rough(age.total_seconds() if age else 0.0)
    return people.plural(age.days, "day")


def _causes(changed: Sequence[Difference], watched: Watched) -> str:
    """The most important differences: ``driver of GPU 0 570.1 became 580.2 and 3 more changes``."""
    shown = [_words(one, watched) for one in _ordered(changed)[:MOST_CAUSES]]
    more = len(changed) - len(shown)
    rest = [people.plural(more, "more change")] if more else []
    return " and ".join([", ".join(shown), *rest])


def _ordered(changed: Sequence[Difference]) -> list[Difference]:
    """Drivers and system first, then frameworks, then everything else."""

    def place(one: Difference) -> int:
        if one.name.endswith(".driver"):
            return 0
        if one.name.startswith("machine.os."):
            return 1
        bench = one.name.startswith("environment.packages.bench-")
        return 2 if one.name.startswith("environment.packages.") and not bench else 3

    return sorted(changed, key=place)


def _words(one: Difference, watched: Watched) -> str:
    return differences.in_words(one, watched.machine.os.name)
