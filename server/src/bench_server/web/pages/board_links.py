"""Links of the leaderboard: metrics, heads that sort, chips that filter. Each keeps the address."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ...answers.board_filters import BoardFilters
from ...answers.families import FAMILIES
from ..heads import HEADS
from . import board_form
from .common import address

# Parameters that are fields of the form; the form has the others as hidden fields.
FIELDS = frozenset(("q", *(field.name for field in board_form.FIELDS)))
# Parameters that say which board is shown and how, not which results: "clear" keeps them.
VIEW = frozenset(
    ("workload", "size", "group", "baseline", "rank_by", "sort", "energy_scope", "limit")
)
# Families that a switch has, and not the chips.
KINDS = {"": "GPU & CPU", "gpu": "GPU", "cpu": "CPU"}
# The head of a row's columns; the metric's and the one beside it are between.
BEFORE, BETWEEN, AFTER = ("rank", "hardware"), ("speed-up",), ("spread", "evidence")
# Parameters that go with a change of another one.
DROPS = {"rank_by": ("sort",), "workload": ("size",), "size": ("workload",)}
# Columns that the board has while it is sorted by them, and their heads.
BESIDE = {"price": "price", "memory_bytes": "memory"}


class Metric(NamedTuple):
    """``bar`` is the field that sets the length of bars, ``beside`` the head of the next column;
    ``first`` is said of the first of several boards, ``leads`` of that of one."""

    value: str
    label: str
    bar: str
    beside: str
    first: str
    leads: str


SPEED = "bar_end"
TRAINS = "trains {} fastest"
METRICS = {
    "throughput": Metric("throughput", "Throughput", SPEED, "time", TRAINS, "is fastest"),
    "time": Metric("time", "Time", SPEED, "throughput", TRAINS, "is fastest"),
    "energy": Metric(
        *("energy", "Energy", "joules_per_epoch", "throughput"),
        "trains {} with the least energy",
        "needs the least energy",
    ),
    "mfu": Metric(
        *("mfu", "MFU", "mfu", "throughput", "uses most of its peak on {}"), "uses most of its peak"
    ),
}


class SortHead(NamedTuple):
    """``key`` of :data:`..heads.HEADS`; ``href`` sorts by it; ``direction``: for ``aria-sort``."""

    key: str
    href: str
    direction: str


class Chip(NamedTuple):
    """``hardware``: the number of hardware that it leaves, null where that is not counted."""

    href: str
    label: str
    hardware: int | None
    chosen: bool


def heads(filters: BoardFilters, metric: Metric, chosen: dict[str, Any]) -> Iterator[SortHead]:
    by_rank = HEADS[metric.value].sort
    current = filters.sort or by_rank
    beside = BESIDE.get(current.removeprefix("-"), metric.beside)
    before = BEFORE if filters.ranks_rows else BEFORE[1:]
    for key in (*before, metric.value, *BETWEEN, beside, *AFTER):
        sort = HEADS[key].sort
        if not sort:
            yield SortHead(key, "", "")
            continue
        sorted_by = current.removeprefix("-") == sort.removeprefix("-")
        direction = ("descending" if current[0] == "-" else "ascending") if sorted_by else ""
        other = sort.removeprefix("-") if sort[0] == "-" else f"-{sort}"
        wanted = other if current == sort else sort
        href = with_value(chosen, "sort", "" if wanted == by_rank else wanted)
        yield SortHead(key, href, direction)


def chips(chosen: dict[str, Any], families: Mapping[str, int]) -> Iterator[tuple[Chip, ...]]:
    """The chosen filters but for the family, then the families."""
    yield tuple(
        Chip(with_value(chosen, name, ""), _chip_label(name, value), None, True)
        for name, value in chosen.items()
        if name not in VIEW | {"family", "cursor"}
    )
    current = chosen.get("family")
    counts = {name: count for name, count in families.items() if name not in KINDS}
    if current is not None and current not in KINDS:
        counts = {current: 0} | counts
    yield tuple(
        Chip(
            with_value(chosen, "family", "" if name == current else name),
            FAMILIES[name].label,
            count,
            name == current,
        )
        for name, count in counts.items()
        if len(counts) > 1 or name == current
    )


def _chip_label(name: str, value: Any) -> str:
    label = {"q": "search", "backing": "evidence"}.get(name) or name.replace("_", " ")
    return f"{label}: {value}"


def hidden_fields(
    chosen: dict[str, Any], fields: Collection[str] = FIELDS
) -> Iterator[tuple[str, str]]:
    """Without the ``fields`` that the form has; a filter starts at the first row again."""
    for name, value in chosen.items():
        if name not in fields and name != "cursor":
            yield name, str(value)


def with_value(chosen: dict[str, Any], name: str, value: str) -> str:
    """The address with one changed parameter, at its first row, without those that go with it."""
    dropped = (name, "cursor", *DROPS.get(name, ()))
    others = {key: item for key, item in chosen.items() if key not in dropped}
    return address("/", others | ({name: value} if value else {}))
