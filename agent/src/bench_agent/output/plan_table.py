"""Output of ``plan``: a JSON document for programs, a table folded by workload for people."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from bench_protocol.base import format as people

from ..plan.memory_fit import need_of
from ..plan.plan import Plan, PlannedCell
from ..plan.presets import corrections
from .console import SOFT, WARNING, say, show_table
from .documents import Document, unusual
from .report.figures import grouped
from .report.remarks import published_lines

LONG_PLAN_SECONDS = 24 * 3600
NOT_COUNTED = (
    "Plus waits for an idle machine, and the first time a self-test of each framework and device."
)
CALIBRATE = "For a better estimate, some seconds each: bench-agent plan --calibrate"
MOST_NAMED = 3
NOTHING = (
    "Nothing to run: each choice is left out, for the reason above. bench-agent devices lists the "
    "frameworks and devices here; bench-agent doctor says what is missing. Or use fewer filters."
)
PLAN_HEADINGS = ("workload and set-up", "recipes", "memory", "a repeat")


def plan_document(plan: Plan) -> Document:
    return {
        "preset": plan.preset.name,
        "repeats": plan.repeats,
        "estimate_seconds": round(plan.estimate_seconds, 1),
        "cells": [
            {
                **planned.cell.model_dump(mode="json"),
                "python": planned.python,
                "estimate_seconds": round(planned.estimate_seconds, 1),
                "memory_estimate_bytes": need.device_bytes,
                "host_memory_estimate_bytes": need.host_bytes,
            }
            for planned in plan.cells
            for need in (need_of(planned.cell, planned.workload),)
        ],
        "accuracy_passes": [
            {
                **planned.cell.model_dump(mode="json"),
                "python": planned.python,
                "epochs": planned.timing.epochs,
                "estimate_seconds": round(planned.estimate_seconds, 1),
            }
            for planned in plan.accuracy_passes
        ],
        "corrections": list(corrections(plan.preset.name)),
        "excluded": [{"what": item.what, "reason": item.reason} for item in plan.excluded],
    }


def print_plan(plan: Plan, shown: Console) -> None:
    """Print the plan: a row for each device of a workload, then what the run takes in one line."""
    rows: list[list[str | Text]] = []
    for of_workload in grouped(plan.cells, lambda planned: planned.cell.workload):
        rows.append([of_workload[0].cell.workload])
        rows += [_plan_row(group) for group in grouped(of_workload, _place)]
    if rows:
        show_table(shown, PLAN_HEADINGS, rows, right=PLAN_HEADINGS[2:])
    for python in dict.fromkeys(planned.python for planned in plan.cells if planned.python):
        cells = [planned.cell for planned in plan.cells if planned.python == python]
        names = ", ".join(dict.fromkeys(f"{cell.framework} {cell.device}" for cell in cells))
        say(shown, f"under {python}: {names}")
    for line in left_out(plan):
        say(shown, line, SOFT)
    for line in published_lines(plan.preset.name):
        say(shown, line)
    if warning := long_warning(plan):
        say(shown, warning, WARNING)
    say(shown, total_line(plan))
    if plan.cells:
        say(shown, NOT_COUNTED, SOFT)
    if any(planned.guessed for planned in plan.cells):
        say(shown, CALIBRATE)


def _place(planned: PlannedCell) -> tuple[object, ...]:
    cell = planned.cell
    return cell.framework, cell.device, cell.batch_size, cell.precision, cell.data


def _plan_row(group: list[PlannedCell]) -> list[str | Text]:
    cell, seconds = group[0].cell, [planned.estimate_seconds for planned in group]
    needs = [need_of(planned.cell, planned.workload) for planned in group]
    shortest, longest = people.rough(min(seconds)), people.rough(max(seconds))
    return [
        f"  {cell.framework} {cell.device}, batch {cell.batch_size:,}{unusual(cell)}",
        ", ".join(planned.cell.recipe for planned in group),
        people.size(max(max(need.device_bytes, need.host_bytes) for need in needs)),
        shortest if shortest == longest else f"{shortest} to {longest}",
    ]


def total_line(plan: Plan) -> str:
    """``16 set-ups of 2 workloads, 1 repeat each, on generated data: about 3 min 20 s``."""
    if not plan.cells:
        return NOTHING
    workloads = len({planned.cell.workload for planned in plan.cells})
    parts = [
        f"{people.plural(len(plan.cells), 'set-up')} of {people.plural(workloads, 'workload')}"
    ]
    parts += [f"{people.plural(plan.repeats, 'repeat')} each"]
    if passes := len(plan.accuracy_passes):
        parts += [f"{people.plural(passes, 'accuracy pass', 'accuracy passes')} over full epochs"]
    data = " and ".join(sorted({planned.cell.data for planned in plan.cells}))
    return f"{', '.join(parts)}, on {data} data: {estimate(plan.cells, plan.estimate_seconds)}."


def estimate(cells: Sequence[PlannedCell], seconds: float) -> str:
    """``about 3 min 20 s``, and where nothing was measured before, that this is a guess."""
    about = f"about {people.rough(seconds)}"
    guessed = {f"{one.cell.framework} {one.cell.device}": None for one in cells if one.guessed}
    if not guessed:
        return about
    if all(one.guessed for one in cells):
        return f"{about}, a guess: nothing was measured here yet"
    return f"{about}, in part a guess: nothing was measured here yet with {', '.join(guessed)}"


def left_out(plan: Plan) -> list[str]:
    """One line for each reason why set-ups are not run."""
    by_reason: dict[str, list[str]] = {}
    for item in plan.excluded:
        by_reason.setdefault(item.reason, []).append(item.what)
    return [
        f"Left out: {', '.join(names) if len(names) <= MOST_NAMED else f'{len(names)} set-ups'}: "
        f"{reason}"
        for reason, names in by_reason.items()
    ]


def long_warning(plan: Plan) -> str | None:
    if plan.estimate_seconds <= LONG_PLAN_SECONDS:
        return None
    return (
        f"Warning: this takes {people.rough(plan.estimate_seconds)}; fix: --budget-seconds 10, "
        "fewer --repeats, or a choice of --workload, --framework, --device"
    )
