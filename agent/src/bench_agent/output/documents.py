"""Names and outcomes of cells in a few words; results of a run, the outbox and a server."""

from collections.abc import Mapping
from typing import Any

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload import doubt_text
from bench_protocol.payload.figures import (
    energy_per_sample_mj,
    samples_per_second,
    within_run_spread,
)
from bench_protocol.payload.result import Failed, Measurement, Result

from ..base.home import Home
from ..plan.presets import corrections
from ..remote.outbox import Entry, Outbox, problem_text
from ..run.summary import RunSummary
from .console import FAILURE, console, say

Document = dict[str, Any]
OWN_HEADINGS = ("id", "sent (UTC)", "workload", "set-up", "samples/s", "status")
FIGURES = (
    *("samples_per_second", "tokens_per_second", "spread", "blocks", "stop_reason"),
    *("energy_per_sample_mj", "energy_per_token_mj", "peak_memory_bytes", "host_peak_memory_bytes"),
)
SETUP_FIELDS = (
    *("workload", "framework", "device", "recipe", "batch_size"),
    *("precision", "data"),
)
USUAL_BATCH = {workload.name: workload.batch_size for workload in CATALOGUE}

PHASES = {
    "start": "starting",
    "import": "importing the framework",
    "data": "making data",
    "build": "building the model",
    "warm_up": "warming up",
    "timing": "timing",
    "evaluate": "evaluating",
    "reading": "training again for the server's check",
}


def setup_name(cell: Cell) -> str:
    """``mlx metal tuned``; what is not usual follows: ``torch cpu naive, batch 256, real data``."""
    return setup_words({name: getattr(cell, name) for name in SETUP_FIELDS})


def setup_words(fields: Mapping[str, Any]) -> str:
    """The set-up that a document's fields name, as :func:`setup_name` has it."""
    name = f"{fields['framework']} {fields['device']} {fields['recipe']}"
    if fields["batch_size"] != USUAL_BATCH.get(fields["workload"]):
        name += f", batch {fields['batch_size']:,}"
    return name + _suffix(fields["precision"], fields["data"])


def unusual(cell: Cell) -> str:
    """Suffix of a name: the precision if it is not float32, the data if they are real."""
    return _suffix(cell.precision, cell.data)


def _suffix(precision: str, data: str) -> str:
    half = "" if precision == "float32" else f", {precision}"
    return f"{half}{', real data' if data == 'real' else ''}"


def short_name(cell: Cell) -> str:
    """``mnist-cnn, mlx metal tuned``."""
    return f"{cell.workload}, {setup_name(cell)}"


def one_line(result: Result) -> str:
    if isinstance(result.outcome, Failed):
        return failure(result.outcome)
    rate = samples_per_second(result.outcome.measurement, result.cell.batch_size)
    return speeds.words(rate, result.cell.workload)


def failure(failed: Failed) -> str:
    if failed.kind == "too_busy":
        return "too busy to measure"
    why = f" ({failed.exception_class})" if failed.exception_class else ""
    return f"{failed.kind.replace('_', ' ')} while {PHASES[failed.phase]}{why}"


def summary_document(summary: RunSummary) -> Document:
    return {
        "results": [result_document(result) for result in summary.results],
        "corrections": list(corrections(summary.results[0].preset)) if summary.results else [],
        "addresses": summary.addresses,
        "machine_page": summary.rank.address if summary.rank else None,
        "rank": summary.rank.words if summary.rank else None,
        "sent": summary.sent,
        "sent_earlier": summary.sent_earlier,
        "failed": summary.failed,
        "refused": summary.refused,
        "server_unreachable": summary.server_unreachable,
    }


def result_document(result: Result) -> Document:
    """One repeat: cell, outcome, figures and warnings."""
    outcome = result.outcome
    measurement = outcome.measurement
    failed = isinstance(outcome, Failed)
    return {
        "run_id": result.run_id,
        "cell": result.cell.model_dump(mode="json"),
        "cell_digest": result.cell.digest,
        "repeat": result.repeat,
        "started": result.clocks.started,
        "status": outcome.status,
        "failure": failure(outcome) if isinstance(outcome, Failed) else None,
        "unit": speeds.unit(result.cell.workload),
        **_figures(None if failed else measurement, result.cell),
        "accuracy": measurement.accuracy if measurement else None,
        "recipe_settings": measurement.recipe_settings if measurement else {},
        "warnings": [{"code": w.code, "words": doubt_text.words(w)} for w in result.warnings],
    }


def _figures(measurement: Measurement | None, cell: Cell) -> Document:
    """Speed, steadiness, energy and memory of one repeat; null without a valid measurement."""
    if measurement is None:
        return dict.fromkeys(FIGURES)
    blocks, rate = measurement.blocks, samples_per_second(measurement, cell.batch_size)
    tokens, joules = (
        speeds.of_tokens(cell.workload, rate),
        energy_per_sample_mj(measurement, cell.batch_size),
    )
    figures = (
        rate,
        tokens,
        within_run_spread(measurement),
        len(blocks.durations_ns),
        blocks.stop_reason,
        joules,
        joules and tokens and joules * rate / tokens,
        measurement.peak_memory_bytes,
        measurement.host_peak_memory_bytes,
    )
    return dict(zip(FIGURES, figures, strict=True))


def status_document(home: Home, outbox: Outbox) -> Document:
    """The outbox: pending results, sent ones with the server's answer, refused ones."""
    return {
        "home": str(home.root),
        "pending": [_entry_document(entry) for entry in outbox.pending()],
        "sent": [_entry_document(entry) for entry in outbox.sent()],
        "refused": [_entry_document(entry) for entry in outbox.refused()],
    }


def print_status(home: Home, outbox: Outbox) -> None:
    shown = console()
    pending, sent, refused = list(outbox.pending()), list(outbox.sent()), list(outbox.refused())
    say(shown, f"{len(pending)} pending, {len(sent)} sent, {len(refused)} refused ({home.root})")
    if sent:
        latest = people.day_and_time(sent[-1].result().clocks.started)
        say(shown, f"latest sent: measured {latest}")
    for entry in pending:
        result = entry.result()
        when = people.day_and_time(result.clocks.started)
        say(shown, f"pending: {when} {short_name(result.cell)}: {one_line(result)}")
    for entry in refused:
        when = people.day_and_time(entry.result().clocks.started)
        answer = entry.answer or {}
        by = f" by {answer['server']}" if "server" in answer else ""
        say(shown, f"refused{by}: {when} {problem_text(answer)}", FAILURE)
    if pending:
        unranked = sum(entry.result().challenge is None for entry in pending)
        note = f" ({unranked} can never be ranked: measured without a server)" if unranked else ""
        say(shown, f"To send them{note}:\n  {home.command('submit --server URL')}")


def own_row(row: Mapping[str, Any]) -> list[str]:
    level, rate = row["trust_level"], row["samples_per_second"]
    ranked = "not on its board yet" if level is None else f"level {level}"
    return [
        row["id"],
        row["received_at"][:10],
        row["workload"],
        setup_words(row),
        "" if rate is None else speeds.among_samples(rate, row["workload"]),
        row["moderation"] or row["unranked_reason"] or ranked,
    ]


def _entry_document(entry: Entry) -> Document:
    return {"file": entry.path.name, "answer": entry.answer, **result_document(entry.result())}
