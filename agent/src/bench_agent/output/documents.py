"""Output of devices, plan, run and status: a JSON document for programs, a table for people."""

import sys
from typing import Any

from rich import box
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from bench_protocol import doubt_text
from bench_protocol import format as people
from bench_protocol.figures import energy_per_sample_mj, samples_per_second
from bench_protocol.hardware import hardware_name
from bench_protocol.machine import Machine
from bench_protocol.matrix import Device
from bench_protocol.result import Failed, Result, Warn

from .. import engines
from ..base.home import Home
from ..plan.memory_fit import need_of
from ..plan.plan import Plan
from ..plan.presets import corrections
from ..remote.outbox import Entry, Outbox
from ..run.probe import Answers, absent
from ..run.run import RunSummary
from .live import failure, one_line
from .report.remarks import published_lines

Document = dict[str, Any]
LONG_PLAN_SECONDS = 24 * 3600


def devices_document(machine: Machine, used: Answers) -> Document:
    """The machine's facts, and the devices of each framework and interpreter.

    Args:
        used: as :func:`~bench_agent.run.probe.in_use` gives them.
    """
    there = {name for _, name in used}
    rows = dict(used)
    rows |= {(None, name): absent(name) for name in engines.names() if name not in there}
    return {
        "machine": machine.model_dump(mode="json"),
        "frameworks": [
            {
                "framework": name,
                "python": path,
                "packages": dict(probe.environment.packages) if probe.environment else {},
                "problem": probe.problem,
                "devices": [
                    {
                        **device.model_dump(),
                        "hardware": hardware_name(
                            machine, Device(kind=device.kind, index=device.index)
                        ),
                    }
                    for device in probe.devices
                ],
            }
            for (path, name), probe in sorted(rows.items(), key=lambda row: row[0][1])
            if probe.devices or probe.problem
        ],
    }


def print_devices(document: Document) -> None:
    """Print :func:`devices_document` as a table."""
    machine = document["machine"]
    memory = people.size(machine["memory_bytes"]) if machine["memory_bytes"] else "unknown"
    Console().print(f"{machine['cpu']['brand']}, {memory} memory, {machine['os']['version']}")
    table = Table()
    several = any(row["python"] for row in document["frameworks"])
    for heading in ("framework", "version", "device", "hardware", *["interpreter"] * several):
        table.add_column(heading, overflow="fold")
    for row in document["frameworks"]:
        version = next(iter(row["packages"].values()), "")
        where = [row["python"] or sys.executable] * several
        for device in row["devices"]:
            name = f"{device['kind']}:{device['index']}" if device["index"] else device["kind"]
            table.add_row(row["framework"], version, name, device["hardware"], *where)
        if not row["devices"]:
            problem = escape(row["problem"] or "")
            table.add_row(row["framework"], version, "none", problem, *where)
    Console().print(table)


def plan_document(plan: Plan) -> Document:
    """Cells with their estimates, and excluded cells with the reason."""
    return {
        "preset": plan.preset.name,
        "repeats": plan.repeats,
        "estimate_seconds": round(plan.estimate_seconds, 1),
        "warnings": [{"code": w.code, "words": _disturbed(w)} for w in plan.warnings],
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


def print_plan(plan: Plan) -> None:
    """Print the plan as a table."""
    console = Console()
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    # On a narrow terminal, names wrap to a second line.
    for heading in ("workload", "on"):
        table.add_column(heading, overflow="fold")
    for heading in ("recipe", "precision", "memory", "a repeat"):
        justify: JustifyMethod = "right" if heading in ("memory", "a repeat") else "left"
        table.add_column(heading, justify=justify, no_wrap=True)
    for planned in plan.cells:
        cell, need = planned.cell, need_of(planned.cell, planned.workload)
        table.add_row(
            f"{cell.workload}, {cell.batch_size}",
            f"{cell.framework} {cell.device}",
            cell.recipe,
            cell.precision,
            people.size(max(need.device_bytes, need.host_bytes)),
            people.rough(planned.estimate_seconds),
        )
    if plan.cells:
        console.print(table)
    for python in dict.fromkeys(planned.python for planned in plan.cells if planned.python):
        cells = [planned.cell for planned in plan.cells if planned.python == python]
        names = ", ".join(dict.fromkeys(f"{cell.framework} {cell.device}" for cell in cells))
        console.print(f"under {python}: {names}", markup=False, soft_wrap=True)
    for line in left_out(plan):
        console.print(line, markup=False, soft_wrap=True)
    total = people.rough(plan.estimate_seconds)
    repeats = f"{plan.repeats} repeat{'s' * (plan.repeats != 1)} each"
    data = " and ".join(sorted({planned.cell.data for planned in plan.cells}))
    for line in published_lines(plan.preset.name):
        console.print(line, markup=False, soft_wrap=True)
    if passes := len(plan.accuracy_passes):
        repeats += f", {passes} accuracy pass{'es' * (passes != 1)} over full epochs"
    number = f"{len(plan.cells)} cell{'s' * (len(plan.cells) != 1)}"
    words = (
        f"{number}, {repeats}, about {total}, on {data} data" if plan.cells else "nothing to run"
    )
    console.print(words, soft_wrap=True)
    for line in plan_warnings(plan):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def left_out(plan: Plan) -> list[str]:
    """One line for each reason why cells are not run."""
    by_reason: dict[str, list[str]] = {}
    for item in plan.excluded:
        by_reason.setdefault(item.reason, []).append(item.what)
    return [
        f"left out: {cells[0] if len(cells) == 1 else f'{len(cells)} cells'}: {reason}"
        for reason, cells in by_reason.items()
    ]


def plan_warnings(plan: Plan) -> list[str]:
    """Warnings about the plan, each with the remedy."""
    warnings = [f"Warning: {_disturbed(w)}; on an idle machine plan again" for w in plan.warnings]
    if plan.estimate_seconds > LONG_PLAN_SECONDS:
        warnings.append(
            f"Warning: this takes {people.rough(plan.estimate_seconds)}; shorter with "
            "--budget-seconds 10, fewer --repeats, or a choice of --workload, --framework, --device"
        )
    return warnings


def _disturbed(warn: Warn) -> str:
    words = doubt_text.words(warn)
    return f"{words} of the calibration, so the estimate may be far too long"


def summary_document(summary: RunSummary) -> Document:
    """Every repeat of a run with its outcome."""
    return {
        "results": [result_document(result) for result in summary.results],
        "corrections": list(corrections(summary.results[0].preset)) if summary.results else [],
        "addresses": summary.addresses,
        "machine_page": summary.standing.address if summary.standing else None,
        "standing": summary.standing.words if summary.standing else None,
        "failed": summary.failed,
        "refused": summary.refused,
        "server_unreachable": summary.server_unreachable,
    }


def result_document(result: Result) -> Document:
    """One repeat: cell, outcome, speed and warnings."""
    outcome = result.outcome
    failed = isinstance(outcome, Failed)
    evaluation = outcome.measurement.evaluation if outcome.measurement else None
    batch_size = result.cell.batch_size
    rate = energy_mj = None
    if not isinstance(outcome, Failed):
        rate = samples_per_second(outcome.measurement, batch_size)
        energy_mj = energy_per_sample_mj(outcome.measurement, batch_size)
    return {
        "run_id": result.run_id,
        "cell": result.cell.model_dump(mode="json"),
        "cell_digest": result.cell.digest,
        "repeat": result.repeat,
        "started": result.clocks.started,
        "status": "failed" if failed else "measured",
        "failure": failure(outcome) if isinstance(outcome, Failed) else None,
        "samples_per_second": rate,
        "energy_per_sample_mj": energy_mj,
        "accuracy": evaluation.accuracy if evaluation else None,
        "recipe_settings": outcome.measurement.recipe_settings if outcome.measurement else {},
        "warnings": [{"code": w.code, "words": doubt_text.words(w)} for w in result.warnings],
    }


def status_document(home: Home, outbox: Outbox) -> Document:
    """The outbox: pending results, sent ones with the server's answer, refused ones."""
    return {
        "home": str(home.root),
        "pending": [_entry_document(entry) for entry in outbox.pending()],
        "sent": [_entry_document(entry) for entry in outbox.sent()],
        "refused": [_entry_document(entry) for entry in outbox.refused()],
    }


def print_status(home: Home, outbox: Outbox) -> None:
    """The outbox in a few lines."""
    console = Console(soft_wrap=True)
    pending, sent, refused = list(outbox.pending()), list(outbox.sent()), list(outbox.refused())
    console.print(f"{len(pending)} waiting, {len(sent)} sent, {len(refused)} refused ({home.root})")
    if sent:
        latest = people.day_and_time(sent[-1].result().clocks.started)
        console.print(f"latest sent: measured {latest}")
    for entry in pending:
        result = entry.result()
        when = people.day_and_time(result.clocks.started)
        console.print(f"waiting: {when} {result.cell}: {one_line(result)}", markup=False)
    for entry in refused:
        when = people.day_and_time(entry.result().clocks.started)
        reason = (entry.answer or {}).get("detail", "no reason given")
        console.print(f"refused: {when} {reason}", markup=False)
    if pending:
        console.print(f"send them: {home.command('submit --server URL')}", markup=False)


def _entry_document(entry: Entry) -> Document:
    return {
        "file": entry.path.name,
        "answer": entry.answer,
        **result_document(entry.result()),
    }
