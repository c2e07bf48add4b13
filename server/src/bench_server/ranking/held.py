"""Hold: a figure of one new owner takes no first place from one that others stand behind.

A new owner costs a key, so one person could make any number of them (:mod:`.owners`). A figure that
new owners of one area alone stand behind is *held* if it is faster than the fastest figure of its
workload that is backed (:attr:`.figures.Figure.backed`), or more than ``BEYOND`` times as fast as
the fastest backed one of its hardware. It is shown in its place without a rank, and no other figure
rests on it. A second owner of another area ends the hold, and so does the operator, who confirms
the owner. Where nothing is backed, nothing is held. See docs/adr/0030-speed-ranks.md.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, func, or_, select

from ..db.lists import among
from .figures import UNITS, Figure
from .rows import TABLE

BEYOND = 1.5
WORDS = "held: needs a second owner"


class Cell(NamedTuple):
    """What is ranked together: a workload at one batch size and precision."""

    workload_digest: str
    batch_size: int
    precision: str


def with_holds(connection: Connection, figures: Sequence[Figure]) -> list[Figure]:
    """The same figures, those that are held marked."""
    alone = {figure.id for figure in figures if _alone(figure)}
    if not alone:
        return list(figures)
    digests = {figure.subject.workload_digest for figure in figures if figure.id in alone}
    backed: dict[tuple[Cell, str], float] = {}
    fastest: dict[Cell, float] = {}
    for row in connection.execute(BACKED, {"ids": sorted(digests)}):
        cell = Cell(row.workload_digest, row.batch_size, row.precision)
        backed[cell, row.hardware_slug] = row.fastest_ns
        fastest[cell] = min(row.fastest_ns, fastest.get(cell, row.fastest_ns))

    def held(figure: Figure) -> bool:
        setup, time = figure.setup, figure.ns_per_sample
        cell = Cell(figure.subject.workload_digest, setup.batch_size, setup.precision)
        of_hardware = backed.get((cell, figure.hardware_slug), 0.0)
        return time < fastest.get(cell, 0.0) or time * BEYOND < of_hardware

    return [one._replace(held=True) if one.id in alone and held(one) else one for one in figures]


def _alone(figure: Figure) -> bool:
    return figure.backing is not None and not figure.backed


_C = TABLE.c
BACKED = (
    select(
        *(_C.workload_digest, _C.batch_size, _C.precision, _C.hardware_slug),
        func.min(_C.ns_per_sample).label("fastest_ns"),
    )
    .where(
        _C.level == "hardware",
        among(_C.workload_digest, "ids"),
        or_(_C.confirmed_owners + _C.established_owners > 0, _C.value_unit == UNITS[-1]),
    )
    .group_by(_C.workload_digest, _C.batch_size, _C.precision, _C.hardware_slug)
)
