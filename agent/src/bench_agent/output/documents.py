"""Results for programs and people: those of a run, of the outbox, of a server."""

from collections.abc import Mapping
from typing import Any

from bench_protocol.base import format as people
from bench_protocol.payload import doubt_text
from bench_protocol.payload.figures import (
    energy_per_sample_mj,
    samples_per_second,
    within_run_spread,
)
from bench_protocol.payload.result import Failed, Measurement, Result

from ..base.home import Home
from ..plan.presets import corrections
from ..remote.outbox import Entry, Outbox
from ..run.summary import RunSummary
from .console import FAILURE, console, say
from .names import failure, one_line, setup_words, short_name

Document = dict[str, Any]
OWN_HEADINGS = ("id", "sent (UTC)", "workload", "set-up", "samples/s", "status")
FIGURES = (
    *("samples_per_second", "spread", "blocks", "stop_reason"),
    *("energy_per_sample_mj", "peak_memory_bytes", "host_peak_memory_bytes"),
)


def summary_document(summary: RunSummary) -> Document:
    """Every repeat of a run with its outcome."""
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
    evaluation = measurement.evaluation if measurement else None
    failed = isinstance(outcome, Failed)
    return {
        "run_id": result.run_id,
        "cell": result.cell.model_dump(mode="json"),
        "cell_digest": result.cell.digest,
        "repeat": result.repeat,
        "started": result.clocks.started,
        "status": outcome.status,
        "failure": failure(outcome) if isinstance(outcome, Failed) else None,
        **_figures(None if failed else measurement, result.cell.batch_size),
        "accuracy": evaluation.accuracy if evaluation else None,
        "recipe_settings": measurement.recipe_settings if measurement else {},
        "warnings": [{"code": w.code, "words": doubt_text.words(w)} for w in result.warnings],
    }


def _figures(measurement: Measurement | None, batch_size: int) -> Document:
    """Speed, steadiness, energy and memory of one repeat; null without a valid measurement."""
    if measurement is None:
        return dict.fromkeys(FIGURES)
    blocks = measurement.blocks
    figures = (
        samples_per_second(measurement, batch_size),
        within_run_spread(measurement),
        len(blocks.durations_ns),
        blocks.stop_reason,
        energy_per_sample_mj(measurement, batch_size),
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
    """The outbox in a few lines."""
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
        reason = (entry.answer or {}).get("detail", "no reason given")
        say(shown, f"refused: {when} {reason}", FAILURE)
    if pending:
        say(shown, f"To send them:\n  {home.command('submit --server URL')}")


def own_row(row: Mapping[str, Any]) -> list[str]:
    """A row of ``results list``; a failed result has no rate."""
    level, rate = row["trust_level"], row["samples_per_second"]
    ranked = "not on its board yet" if level is None else f"level {level}"
    return [
        row["id"],
        row["received_at"][:10],
        row["workload"],
        setup_words(row),
        "" if rate is None else people.rate(rate),
        row["moderation"] or row["unranked_reason"] or ranked,
    ]


def _entry_document(entry: Entry) -> Document:
    return {
        "file": entry.path.name,
        "answer": entry.answer,
        **result_document(entry.result()),
    }
