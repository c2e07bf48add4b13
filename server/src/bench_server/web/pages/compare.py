"""``/compare``: two to twenty items side by side."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmodel import Session

from ...answers import comparison, queries
from ...answers.types import Across, CompareAnswer, ComparedCell
from .common import Choice, address

MOST_CHOICES = 60
# Each of these ratios begins a stronger colour.
STRONGER = (1.25, 2.0, 4.0)


@dataclass(frozen=True)
class ComparePage:
    """``/compare``: which is faster, and how certain is that? ``answer`` is null before a choice;
    ``too_few``: less than two different items were chosen. ``heat``: for each row, a class for each
    cell. ``picked``: the chosen items; ``hardware``: other hardware that matches ``q``."""

    title: str
    json_href: str | None
    csv_href: str | None
    image_href: str | None
    answer: CompareAnswer | None
    heat: tuple[tuple[str, ...], ...]
    picked: tuple[Choice, ...]
    hardware: tuple[Choice, ...]
    q: str
    prices: Mapping[str, float]
    too_few: bool


def compare_page(
    session: Session,
    ids: tuple[str, ...],
    prices: Mapping[str, float],
    across: Across | None,
    q: str,
) -> ComparePage:
    """Fill the context. Raises NotFound if one of the ids is unknown."""
    hardware_names = queries.ranked_hardware(session)
    wanted = q.lower().split()
    fitting = [pair for pair in hardware_names if all(word in pair[1].lower() for word in wanted)]
    others = tuple(Choice(slug, name, False) for slug, name in fitting if slug not in ids)
    names = dict(hardware_names)
    if len(ids) < 2:
        picked = tuple(Choice(item, names.get(item, item), True) for item in ids)
        return ComparePage(
            "Compare", None, None, None, None, (), picked, others[:MOST_CHOICES], q, {}, bool(ids)
        )
    answer = comparison.compare(session, ids, prices, across)
    more = len(answer.things) - 2
    title = " and ".join(thing.name for thing in answer.things[:2])
    parameters = {"ids": ",".join(ids)}
    parameters |= {f"price.{item}": f"{price:g}" for item, price in prices.items()}
    parameters |= {"across": across} if across else {}
    return ComparePage(
        title=f"{title} and {more} more" if more > 0 else title,
        json_href=address("/api/v1/compare", parameters),
        csv_href=address("/api/v1/compare.csv", parameters),
        image_href=address("/compare/card.png", parameters),
        answer=answer,
        heat=tuple(tuple(heat(cell) for cell in row.cells) for row in answer.rows),
        picked=tuple(Choice(thing.id, thing.name, True) for thing in answer.things),
        hardware=others[:MOST_CHOICES],
        q=q,
        prices=prices,
        too_few=False,
    )


def heat(cell: ComparedCell | None) -> str:
    """The class of a cell's colour: ``up-1`` to ``up-4`` faster, ``down-1`` to ``down-4`` slower,
    ``even`` without a credible difference or without a base."""
    if cell is None or cell.speed_up is None or cell.kind not in ("faster", "slower"):
        return "even"
    away = max(cell.speed_up, 1 / cell.speed_up)
    step = 1 + sum(away >= ratio for ratio in STRONGER)
    return f"{'up' if cell.speed_up > 1 else 'down'}-{step}"
