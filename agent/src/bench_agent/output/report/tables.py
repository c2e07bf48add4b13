"""The report's figures as Markdown, CSV, JSON, and the rows of the HTML table."""

import csv
import io
import json
from dataclasses import dataclass, fields
from typing import Any

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload import doubt_text
from bench_protocol.payload.figures import samples_per_second, within_run_spread
from bench_protocol.payload.result import Measured, Result

from ..documents import result_document
from .charts import BarGroup, charts_of
from .figures import MARK_WORDS, MEDIAN_WORDS, CellFigures, Report, grouped, marked
from .headline import headline
from .remarks import accuracy_lines, published_lines

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


def markdown(report: Report) -> str:
    """The report as Markdown: headline, comparisons, table, warnings."""
    charts, table = charts_of(report), table_of(report)
    lines = [
        f"# {report.hardware}: {headline(report, rates=False)}",
        "",
        f"Run {report.run_id[:8]}, preset {report.preset}, on {report.data} data, "
        f"{started(report)} UTC.",
    ]
    if report.incomplete:
        lines += ["", report.incomplete]
    if any(len(figures.rates) > 1 for figures in report.cells):
        lines += ["", MEDIAN_WORDS]
    if any(figures.in_doubt for figures in report.cells):
        lines += ["", MARK_WORDS]
    for title, groups in (
        ("CPU against GPU", charts.devices),
        ("Naive, pipeline, tuned", charts.recipes),
        ("Framework against framework", charts.frameworks),
    ):
        lines += ["", f"## {title}", *_compared(groups)] if groups else []
    lines += ["", "## The figures", ""]
    lines.append(people.markdown(table.heading, table.rows))
    if corrections := published_lines(report.preset):
        lines += ["", f"## Like {report.preset}", "", *(f"* {line}" for line in corrections)]
    if accuracies := accuracy_lines(report.results):
        lines += ["", "## Accuracy", "", *(f"* {line}" for line in accuracies)]
    if report.doubts:
        lines += ["", "## Doubts", "", *(f"* {doubt}" for doubt in report.doubts)]
    if settings := settings_of(report):
        lines += ["", "## How each recipe was run", ""]
        lines += [f"* {name}: {text}" for name, text in settings]
    lines += ["", "## Machine and software", ""]
    lines += [f"* {name}: {value}" for name, value in facts_of(report)]
    return "\n".join(lines) + "\n"


def comma_separated(report: Report) -> str:
    """The report as CSV: one row per result, raw numbers, units in the heading."""
    stream = io.StringIO()
    rows = [_raw(result) for result in report.results]
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


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


def _raw(result: Result) -> dict[str, Any]:
    cell = result.cell.model_dump(mode="json") | {"device": str(result.cell.device)}
    figures = dict.fromkeys(
        (
            *("samples_per_second", "spread", "blocks", "stop_reason"),
            *("peak_memory_bytes", "host_peak_memory_bytes"),
        )
    )
    if isinstance(result.outcome, Measured):
        measured = result.outcome.measurement
        figures = {
            "samples_per_second": samples_per_second(measured, result.cell.batch_size),
            "spread": within_run_spread(measured),
            "blocks": len(measured.blocks.durations_ns),
            "stop_reason": measured.blocks.stop_reason,
            "peak_memory_bytes": measured.peak_memory_bytes,
            "host_peak_memory_bytes": measured.host_peak_memory_bytes,
        }
    return {
        "run_id": result.run_id,
        **cell,
        "repeat": result.repeat,
        "started_at": result.clocks.started,
        "status": result.outcome.status,
        "failure_kind": getattr(result.outcome, "kind", None),
        **figures,
        "warnings": "; ".join(doubt_text.words(warn) for warn in result.warnings),
    }


def _compared(groups: tuple[BarGroup, ...]) -> list[str]:
    lines = []
    for group in groups:
        lines += ["", f"**{group.title}**", ""]
        lines += [
            f"* {bar.label}: {bar.value} samples/s{', ' + bar.note if bar.note else ''}"
            for bar in group.bars
        ]
    return lines
