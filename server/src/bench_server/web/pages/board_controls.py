"""Controls that choose the rows of the leaderboard: tabs, switches, the form, and chips."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlmodel import Session

from bench_protocol.catalogue.catalogue import CATALOGUE, SHORT_STEPS
from bench_protocol.catalogue.workloads import SIZES, Size

from ...answers import query_names
from ...answers.board_filters import BoardFilters
from ...answers.criteria import Search
from ...answers.families import FAMILIES, contains
from ...answers.leaderboard import Ranking
from ...answers.types.leaderboard import Board
from . import board_form
from .board_links import KINDS, METRICS, VIEW, Chip, chips, hidden_fields, with_value
from .common import Choice, address

GROUPS = {"": "Best of each hardware", "setup": "Every set-up", "machine": "Every machine"}
# Sorts that the switch of figures has beside the metrics, and what a row has then.
FURTHER = {"price": ("Price", "price"), "-memory_bytes": ("Memory", "memory_bytes")}


@dataclass(frozen=True)
class Controls:
    """``workloads``: the first link of a group is its size of models; ``kept``: parameters of this
    address that are no fields; ``unfolded``: a filter is set that only the form has."""

    workloads: tuple[tuple[Choice, ...], ...]
    kinds: tuple[Choice, ...]
    confirmed: Choice
    metrics: tuple[Choice, ...]
    scopes: tuple[Choice, ...]
    groups: tuple[Choice, ...]
    fields: tuple[tuple[board_form.Field, tuple[Choice, ...]], ...]
    kept: tuple[tuple[str, str], ...]
    chips: tuple[tuple[Chip, ...], ...]
    narrowed: bool
    unfolded: bool
    clear_href: str


def controls(
    session: Session,
    filters: BoardFilters,
    chosen: dict[str, Any],
    boards: Sequence[Board],
    rankings: Sequence[Ranking],
) -> Controls:
    """``chosen``: this address's parameters; ``rankings``: the rows that ``boards`` are of."""
    sizes = sorted({size for board in boards for size in board.workload.batch_sizes})
    further = {
        "framework": [(name, name) for name in query_names.frameworks(session)],
        "batch_size": [(str(size), str(size)) for size in sizes],
        "baseline": query_names.ranked_hardware(session),
    }
    metrics = {"" if name == "throughput" else name: one.label for name, one in METRICS.items()}
    sorts = {
        sort: label
        for sort, (label, field) in FURTHER.items()
        if any(getattr(row, field) for board in boards for row in board.rows)
    }
    by = "" if filters.ranked_by == "throughput" else filters.ranked_by
    scopes = {scope: scope for board in boards for scope in board.energy_scopes}
    shown_scopes = {board.energy_scope for board in boards if board.rows}
    scope = shown_scopes.pop() if len(shown_scopes) == 1 else None

    def links(name: str, values: dict[str, str], current: str | None) -> tuple[Choice, ...]:
        return tuple(
            Choice(with_value(chosen, name, value), label, current == value)
            for value, label in values.items()
        )

    only = "" if filters.backing == "confirmed" else "confirmed"
    return Controls(
        workloads=_workloads(chosen, filters),
        kinds=links("family", KINDS, filters.family or ""),
        confirmed=Choice(with_value(chosen, "backing", only), "Only confirmed", not only),
        metrics=links("rank_by", metrics, None if filters.sort in sorts else by)
        + links("sort", sorts, filters.sort),
        scopes=links("energy_scope", scopes, scope) if len(scopes) > 1 else (),
        groups=links("group", GROUPS, "" if filters.group == "hardware" else filters.group or ""),
        fields=board_form.filled(filters, further),
        kept=tuple(hidden_fields(chosen)),
        chips=tuple(chips(chosen, _families(rankings, filters.criteria.search))),
        narrowed=bool(chosen.keys() - VIEW - {"cursor"}),
        unfolded=bool(chosen.keys() - VIEW - {"cursor", "family", "backing"}),
        clear_href=address("/", {name: chosen[name] for name in chosen if name in VIEW}),
    )


def _workloads(chosen: dict[str, Any], filters: BoardFilters) -> tuple[tuple[Choice, ...], ...]:
    def link(name: str, value: str, label: str) -> Choice:
        return Choice(with_value(chosen, name, value), label, getattr(filters, name) == value)

    sizes = tuple(
        (
            link("size", size, _size_words(size)),
            *(link("workload", name, name) for name in _in_row(size, filters.workload)),
        )
        for size in reversed(SIZES)
    )
    whole = filters.workload is None and filters.size is None
    without = {name: chosen[name] for name in chosen if name != "size"}
    return ((Choice(with_value(without, "workload", ""), "All models", whole),), *sizes)


def _in_row(size: Size, chosen: str | None) -> Iterator[str]:
    """Names of models of a size; those with short steps only if chosen."""
    for one in CATALOGUE:
        if one.size == size and (one.name not in SHORT_STEPS or one.name == chosen):
            yield one.name


def _size_words(size: Size) -> str:
    """``Medium, 250 k to 10 M weights``."""
    fewest = SIZES[size]
    larger = min((other for other in SIZES.values() if other > fewest), default=None)
    if larger is None:
        weights = f"over {_short(fewest)}"
    else:
        weights = f"{_short(fewest)} to {_short(larger)}" if fewest else f"under {_short(larger)}"
    return f"{size.title()}, {weights} weights"


def _short(count: int) -> str:
    return f"{count / 1e6:g} M" if count >= 1e6 else f"{count / 1e3:g} k"


def _families(rankings: Sequence[Ranking], search: Search) -> dict[str, int]:
    """Numbers of hardware models by family, whatever family is searched for."""
    any_family = replace(search, family=None)
    rows = (row for one in rankings for row in one.rows if any_family.finds(row.figure))
    models = {
        (figure.hardware_slug, figure.hardware, figure.setup.device)
        for row in rows
        for figure in (row.figure, *row.others)
    }
    found = {
        (name, slug)
        for slug, hardware, device in models
        for name in FAMILIES
        if contains(name, hardware, device)
    }
    counts = Counter(name for name, _ in found)
    return {name: counts[name] for name in FAMILIES if counts[name]}
