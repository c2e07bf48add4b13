"""The report as one HTML file, without scripts or external files, and as JSON."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.trust.trust_levels import DEVICES

from ..documents import result_document
from .charts import charts_of
from .figures import MARK_WORDS, MEDIAN_WORDS, CellFigures, Report, grouped, marked
from .neighbours import NOBODY, Around, beside
from .remarks import accuracy_lines, doubts_of, headline, published_lines, tuned_words

FOLDER = Path(__file__).parent
MOST_TRACES = 12
HEADING = (
    *("workload", "batch", "on", "recipe", "samples/s", "95 % interval", "epoch", "spread"),
    *("start-up", "processes", "precision"),
)
# Members of a cell's JSON by the names that the server's API has for them.
NAMES = {
    "low": "samples_per_second_low",
    "high": "samples_per_second_high",
    "within_run_spread": "spread",
}


def html(report: Report, around: Around = NOBODY) -> str:
    """The page; everything from the results is escaped. ``around``: other machines beside this
    one."""
    charts = charts_of(report)
    templates = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("report.html.j2").render(
        css=(FOLDER / "report.css").read_text(),
        report=report,
        charts=replace(
            charts, fastest=tuple(beside(one, around.neighbours) for one in charts.fastest)
        ),
        headline=headline(report),
        tuned=tuned_words(report),
        around=around,
        heading=HEADING,
        rows=rows_of(report),
        settings=settings_of(report),
        facts=_facts(report),
        started=report.started[:16].replace("T", " "),
        kinds=[kind for kind in DEVICES if kind in {c.cell.device.kind for c in report.cells}],
        names=DEVICES,
        corrections=published_lines(report.preset),
        accuracies=accuracy_lines(report.results),
        doubts=doubts_of(report),
        most_traces=MOST_TRACES,
        whiskers=any(figures.low for figures in report.cells),
        median_words=MEDIAN_WORDS,
        mark=MARK_WORDS if any(figures.in_doubt for figures in report.cells) else None,
    )


def rows_of(report: Report) -> list[tuple[str, ...]]:
    """The table: all cells in the order of measurement, then the failed ones with the reason."""
    failed = ((*_names(cell), why, *[""] * 5, cell.precision) for cell, why in report.failed)
    return [*map(_row, report.cells), *failed]


def _row(figures: CellFigures) -> tuple[str, ...]:
    workload, interval = figures.cell.workload, ""
    if figures.low and figures.high:
        interval = speeds.interval(figures.low, figures.high, workload)
    return (
        *_names(figures.cell),
        marked(speeds.among_samples(figures.samples_per_second, workload), figures),
        interval,
        people.seconds(figures.epoch_seconds),
        people.percent(figures.within_run_spread),
        people.seconds(figures.startup_seconds),
        str(len(figures.rates)),
        figures.cell.precision,
    )


def _names(cell: Cell) -> tuple[str, ...]:
    place = f"{cell.framework} {cell.device}"
    return cell.workload, f"{cell.batch_size:,}", place, cell.recipe


def _facts(report: Report) -> list[tuple[str, str]]:
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


def as_json(report: Report) -> str:
    """The run, its machine, figures of each cell, each result, and the warnings."""
    document = {
        "run_id": report.run_id,
        "preset": report.preset,
        "started": report.started,
        "incomplete": report.incomplete,
        "machine": report.machine.model_dump(mode="json"),
        "software": dict(report.software),
        "cells": [_cell_document(figures) for figures in report.cells],
        "failed": [{"cell": c.model_dump(mode="json"), "failure": w} for c, w in report.failed],
        "results": [result_document(result) for result in report.results],
        "doubts": doubts_of(report),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _cell_document(figures: CellFigures) -> dict[str, Any]:
    members = {
        NAMES.get(field.name, field.name): getattr(figures, field.name)
        for field in fields(figures)
        if field.name not in ("cell", "typical")
    }
    return {"cell": figures.cell.model_dump(mode="json"), **members}
