"""Controls that choose the rows of the leaderboard: tabs, switches, the form, and chips."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from bench_protocol.catalogue.catalogue import CATALOGUE

from ...answers import query_names
from ...answers.board_filters import BoardFilters
from ...answers.facets import Facet
from ...answers.types.leaderboard import Board
from . import board_form
from .board_links import METRICS, VIEW, Chip, chips, hidden_fields, with_value
from .common import Choice, address

GROUPS = {"": "Best of each hardware", "setup": "Every set-up"}


@dataclass(frozen=True)
class Controls:
    """What chooses the rows. ``scopes`` of energy, if there is a choice; ``fields`` of the form,
    and ``kept``, the parameters of this address that are none of them. ``chips``: groups of
    filters, the chosen ones that have no group first. ``narrowed``: a filter is set, and
    ``clear_href`` is the address without any."""

    workloads: tuple[Choice, ...]
    metrics: tuple[Choice, ...]
    scopes: tuple[Choice, ...]
    groups: tuple[Choice, ...]
    fields: tuple[tuple[board_form.Field, tuple[Choice, ...]], ...]
    kept: tuple[tuple[str, str], ...]
    chips: tuple[tuple[Chip, ...], ...]
    narrowed: bool
    clear_href: str


def controls(
    session: Session,
    filters: BoardFilters,
    chosen: dict[str, Any],
    boards: Sequence[Board],
    counted: Sequence[Facet],
) -> Controls:
    """The controls of a board.

    Args:
        chosen: the parameters of this address.
        boards: what they choose.
        counted: filters with their number of hardware models.
    """
    sizes = sorted({size for board in boards for size in board.workload.batch_sizes})
    further = {
        "framework": [(name, name) for name in query_names.frameworks(session)],
        "batch_size": [(str(size), str(size)) for size in sizes],
        "baseline": query_names.ranked_hardware(session),
    }
    workloads = {"": "All workloads"} | {one.name: one.name for one in CATALOGUE}
    metrics = {"" if name == "throughput" else name: one.label for name, one in METRICS.items()}
    by = "" if filters.rank_by == "throughput" else filters.rank_by
    scopes = {scope: scope for board in boards for scope in board.energy_scopes}
    shown_scopes = {board.energy_scope for board in boards if board.rows}
    scope = shown_scopes.pop() if len(shown_scopes) == 1 else None

    def links(name: str, values: dict[str, str], current: str | None) -> tuple[Choice, ...]:
        return tuple(
            Choice(with_value(chosen, name, value), label, (current or "") == value)
            for value, label in values.items()
        )

    return Controls(
        workloads=links("workload", workloads, filters.workload),
        metrics=links("rank_by", metrics, by),
        scopes=links("energy_scope", scopes, scope) if len(scopes) > 1 else (),
        groups=links("group", GROUPS, "setup" if filters.group == "setup" else ""),
        fields=board_form.filled(filters, further),
        kept=tuple(hidden_fields(chosen)),
        chips=tuple(chips(chosen, counted)),
        narrowed=bool(chosen.keys() - VIEW - {"cursor"}),
        clear_href=address("/", {name: chosen[name] for name in chosen if name in VIEW}),
    )
