"""The order of a board's rows. Ranks follow from ``rank_by`` alone; ``sort`` moves rows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.peaks import peak_flops

from ..ranking.compare import RankedRow
from ..ranking.figures import Figure
from ..ranking.owners import BACKINGS
from . import cursors
from .board_filters import BoardFilters
from .prices import NO_PRICES, Prices
from .specifications import stated_memory

Value = float | str | None

# Values that boards rank by, smallest first; None omits a figure. Within one workload MFU is
# proportional to the peak divided by the time.
RANK_BY: dict[str, Callable[[Figure], float | None]] = {
    "time": lambda figure: figure.ns_per_sample,
    "throughput": lambda figure: figure.ns_per_sample,
    "energy": lambda figure: figure.evidence.joules_per_sample,
    "mfu": lambda figure: _negative(_peak_use(figure)),
}
# Fields of an answer that rows are sorted by (parameters.SORT_FIELDS); rows without one are last.
FIELDS: dict[str, Callable[[Figure], Value]] = {
    "hardware": lambda figure: figure.hardware.casefold(),
    "samples_per_second": lambda figure: 1e9 / figure.ns_per_sample,
    "epoch_seconds": lambda figure: figure.ns_per_sample * _epoch_samples(figure),
    "joules_per_epoch": lambda figure: (
        None
        if figure.evidence.joules_per_sample is None
        else figure.evidence.joules_per_sample * _epoch_samples(figure)
    ),
    "mfu": lambda figure: _peak_use(figure),
    "accuracy": lambda figure: figure.evidence.accuracy,
    "spread": lambda figure: None if figure.published else figure.spread[0],
    "backing": lambda figure: (
        None if figure.backing is None else -float(BACKINGS.index(figure.backing))
    ),
    "memory_bytes": lambda figure: stated_memory(figure.hardware),
    "trust_level": lambda figure: float(figure.trust_level),
    "newest_at": lambda figure: figure.newest_at.timestamp(),
}


class Place(NamedTuple):
    """Rows without a value are last; equal ones are sorted by speed, then by id."""

    missing: int
    value: float | str
    ns_per_sample: float
    id: str


class Order(NamedTuple):
    value: Callable[[Figure], Value]
    descending: bool
    kind: type

    @classmethod
    def of(
        cls, filters: BoardFilters, baseline: Figure | None, prices: Prices = NO_PRICES
    ) -> "Order":
        """The order that the filters ask for: of a field, else of the ranks."""
        if filters.sort is None:
            return cls(RANK_BY[filters.ranked_by], False, float)
        name = filters.sort.removeprefix("-")

        def speed_up(figure: Figure) -> Value:
            return baseline.ns_per_sample / figure.ns_per_sample if baseline else None

        def price(figure: Figure) -> Value:
            found = prices.of(figure.hardware_slug, figure.hardware_slug, figure.hardware)
            return found.amount if found else None

        value = {"speed_up": speed_up, "price": price}.get(name) or FIELDS[name]
        return cls(value, filters.sort[0] == "-", str if name == "hardware" else float)

    def sorted(self, rows: Sequence[RankedRow]) -> list[RankedRow]:
        """Rows in this order, those with equal values by speed."""
        places = {row.figure.id: self.place(row) for row in rows}

        def at(row: RankedRow) -> Place:
            return places[row.figure.id]

        by_speed = sorted(rows, key=lambda row: at(row)[2:])
        by_value = sorted(by_speed, key=lambda row: at(row).value, reverse=self.descending)
        return sorted(by_value, key=lambda row: at(row).missing)

    def page(
        self, rows: list[RankedRow], limit: int, cursor: str | None
    ) -> tuple[list[RankedRow], str | None]:
        """The rows after a cursor, and the next. Raises InvalidQuery for one of another order."""
        if cursor is not None:
            last = Place(*cursors.read(cursor, int, self.kind, float, str))
            rows = [row for row in rows if self._follows(self.place(row), last)]
        page = rows[:limit]
        return page, cursors.write(*self.place(page[-1])) if len(rows) > len(page) else None

    def place(self, row: RankedRow) -> Place:
        figure = row.figure
        value = self.value(figure)
        return Place(
            int(value is None),
            self.kind() if value is None else value,
            float(figure.ns_per_sample),
            figure.id,
        )

    def _follows(self, place: Place, last: Place) -> bool:
        if place.missing != last.missing:
            return place.missing > last.missing
        if place.value != last.value:
            return (place.value > last.value) != self.descending  # type: ignore[operator]
        return place[2:] > last[2:]


def _peak_use(figure: Figure) -> float | None:
    peak = peak_flops(figure.hardware, figure.setup.precision)
    return None if peak is None else 1 / figure.ns_per_sample / peak


def _epoch_samples(figure: Figure) -> int:
    batch_size = figure.setup.batch_size
    return workload_named(figure.subject.workload).steps_per_epoch(batch_size) * batch_size


def _negative(value: float | None) -> float | None:
    return None if value is None else -value
