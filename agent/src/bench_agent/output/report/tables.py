"""The report's figures as JSON, and the rows of the HTML table."""

import json
from dataclasses import dataclass, fields
from typing import Any

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Cell

from ..documents import result_document
from .figures import CellFigures, Report, grouped, marked

HEADING = (
    *("workload", "batch", "on", "recipe", "samples/s", "95 % interval", "epoch", "spread"),
    *("start-up", "processes", "precision"),
)


@dataclass(frozen=True)
class Table:
    """One row per cell, as text."""

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def table_of(report: Report) -> Table:
    """All cells in the order of measurement, then the failed ones with the reason."""
    failed = ((*_names(cell), why, *[""] * 5, cell.precision) for cell, why in report.failed)
    return Table(HEADING, (*map(_row, report.cells), *failed))


def facts_of(report: Report) -> list[tuple[str, str]]:
    """Machine and software, name and value."""
    machine = report.machine
    memory = people.size(machine.memory_bytes) if machine.memory_bytes else "unknown"
    gpus = [("GPU", gpu.name) for gpu in machine.gpus]
    cores = str(machine.cpu.logical_cores or "unknown")
    hardware = [("processor", machine.cpu.brand), ("logical cores", cores), *gpus]
    return [*hardware, ("memory", memory), ("system", machine.os.words), *report.software]


def settings_of(report: Report) -> list[tuple[str, str]]:
    """Settings of each recipe by framework and device; with the workloads if settings differ
    between them."""
    rows = []
    for configured in grouped(report.cells, lambda figures: (figures.place, figures.cell.recipe)):
        alike = grouped(configured, _settings)
        for same in alike:
            names = ", ".join(dict.fromkeys(figures.cell.workload for figures in same))
            which = f" ({names})" if len(alike) > 1 else ""
            name = f"{same[0].place} {same[0].cell.recipe}{which}"
            rows.append((name, _settings(same[0])))
    return [(name, settings) for name, settings in rows if settings]


def _settings(figures: CellFigures) -> str:
    return ", ".join(f"{k} {v}" for k, v in sorted(figures.typical.recipe_settings.items()))


def document(report: Report) -> dict[str, Any]:
    """The report as JSON members: the run, figures of each cell, each result."""
    return {
        "run_id": report.run_id,
        "preset": report.preset,
        "started": report.started,
        "incomplete": report.incomplete,
        "machine": report.machine.model_dump(mode="json"),
        "software": dict(report.software),
        "cells": [_cell_document(figures) for figures in report.cells],
        "failed": [{"cell": c.model_dump(mode="json"), "failure": w} for c, w in report.failed],
        "results": [result_document(result) for result in report.results],
        "doubts": list(report.doubts),
    }


# Members of a cell by the names that the server's API has for them.
NAMES = {
    "low": "samples_per_second_low",
    "high": "samples_per_second_high",
    "within_run_spread": "spread",
}


def _cell_document(figures: CellFigures) -> dict[str, Any]:
    members = {
        f.name: getattr(figures, f.name)
        for f in fields(figures)
        if f.name not in ("cell", "typical")
    }
    members = {NAMES.get(name, name): value for name, value in members.items()}
    return {"cell": figures.cell.model_dump(mode="json"), **members}


def as_json(report: Report) -> str:
    """:func:`document` as text."""
    return json.dumps(document(report), indent=2, ensure_ascii=False) + "\n"


def started(report: Report) -> str:
    """Date and time to the minute."""
    return report.started[:16].replace("T", " ")


def _names(cell: Cell) -> tuple[str, ...]:
    place = f"{cell.framework} {cell.device}"
    return cell.workload, f"{cell.batch_size:,}", place, cell.recipe


def _row(figures: CellFigures) -> tuple[str, ...]:
    interval = ""
    if figures.low and figures.high:
        interval = f"{people.rate(figures.low)} to {people.rate(figures.high)}"
    return (
        *_names(figures.cell),
        marked(people.rate(figures.samples_per_second), figures),
        interval,
        people.seconds(figures.epoch_seconds),
        people.percent(figures.within_run_spread),
        people.seconds(figures.startup_seconds),
        str(len(figures.rates)),
        figures.cell.precision,
    )
