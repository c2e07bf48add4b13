"""Rows of ``results list``: a machine's own results on a server."""

from collections.abc import Mapping
from typing import Any

from bench_protocol.base import format as people

from .names import setup_words

OWN_HEADINGS = ("id", "sent (UTC)", "workload", "set-up", "samples/s", "status")


def own_row(row: Mapping[str, Any]) -> list[str]:
    """A result as its sender sees it. A server of an earlier version tells no set-up and no rate;
    a failed result has no rate."""
    level, rate = row.get("trust_level"), row.get("samples_per_second")
    ranked = "not on its board yet" if level is None else f"level {level}"
    return [
        row["id"],
        row["received_at"][:10],
        row["workload"],
        setup_words(row) if "framework" in row else "",
        "" if rate is None else people.rate(rate),
        row["moderation"] or row["unranked_reason"] or ranked,
    ]
