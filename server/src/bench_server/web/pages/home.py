"""``/``: the home page, a chart of all hardware by score."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session

from ...answers import facets, leaderboard, machines
from ...answers.board_filters import BoardFilters
from ...answers.parameters import Part
from ...answers.types.leaderboard import HardwareScore
from ..dots import DotPlot
from .board_chart import score_chart
from .board_controls import Controls, controls
from .board_finding import finding
from .board_links import METRICS, hidden_fields
from .common import Page, address

SCORES: tuple[Part, ...] = ("scores",)
# The beginning of a machine's id.
MACHINE = re.compile("[0-9a-f]{8,16}")


@dataclass(frozen=True)
class HomePage(Page):
    """``/``: how fast does hardware train? ``heading`` states the finding; ``chart``: all hardware
    by score, with a ring around what ``filters.q`` names; ``machine``: its id, if it is one;
    ``measured``: the number of hardware that was measured; ``kept``: parameters of this address
    that a search keeps."""

    image_href: str
    heading: str
    filters: BoardFilters
    machine: str
    measured: int
    kept: tuple[tuple[str, str], ...]
    chart: DotPlot
    controls: Controls


def home_page(
    session: Session, filters: BoardFilters, of_operator: str | None = None
) -> HomePage | None:
    """Fill the context. None where the filters ask for boards, or fewer than two hardware have a
    score: then boards say more."""
    if not filters.is_of_scores:
        return None
    chosen = filters.model_dump(exclude_defaults=True)
    asked, machine = filters.model_copy(update={"limit": 1}), None
    if filters.q and MACHINE.fullmatch(filters.q):
        machine = machines.starting_with(session, filters.q)
    if machine:
        asked = asked.model_copy(update={"q": None, "hardware": machine.slugs[0]})
    found = leaderboard.leaderboard(session, asked, of_operator, SCORES)
    mine = machine.slugs if machine else _named(found.scores, asked)
    chart = score_chart(found.scores, mine)
    if chart is None:
        return None
    families = facets.families(found.rankings, filters.criteria.search)
    parameters = {name: chosen[name] for name in chosen if name != "limit"}
    return HomePage(
        title="Leaderboard",
        json_href=address("/api/v1/leaderboard", {**chosen, "include": "scores"}),
        image_href=address("/card.png", parameters),
        heading=finding(asked, METRICS["throughput"], found.rankings, found.scores),
        filters=filters,
        machine=machine.id if machine else "",
        measured=sum(not one.published for one in found.scores),
        kept=tuple(hidden_fields(parameters, {"q"})),
        chart=chart,
        controls=controls(session, filters, parameters, found.boards, families),
    )


def _named(scores: Sequence[HardwareScore], filters: BoardFilters) -> set[str]:
    search = filters.criteria.search
    of_one = (one for one in scores if search.is_of_one)
    return {one.hardware_slug for one in of_one if search.names(one.hardware, one.hardware_slug)}
