"""``/``: the home page, a chart of all hardware by score."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlmodel import Session

from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import CATALOGUE, SHORT_STEPS

from ...answers import leaderboard, machines
from ...answers.board_filters import BoardFilters
from ...answers.parameters import Part
from ...answers.types.leaderboard import HardwareScore
from ..dots import DotPlot, Row, Value, dot_plot
from .board_controls import Controls, controls
from .board_finding import backed, finding
from .board_links import METRICS, hidden_fields
from .common import Page, address, vendor

SCORES: tuple[Part, ...] = ("scores",)
# The beginning of a machine's id.
MACHINE = re.compile("[0-9a-f]{8,16}")
# Rows of the chart that are not folded away: half of them if some are ringed, which come next.
UNFOLDED_ROWS = 20


@dataclass(frozen=True)
class HomePage(Page):
    """``/``: how fast does hardware train? ``chart``: all hardware by score, that of ``filters.q``
    ringed; ``machine``: its id, if it is one; ``kept``: parameters that a search keeps; ``models``:
    name, summary of each workload, those with short steps as ``others``."""

    image_href: str
    heading: str
    filters: BoardFilters
    machine: str
    measured: int
    published: int
    backed: str
    kept: tuple[tuple[str, str], ...]
    chart: DotPlot
    controls: Controls
    models: tuple[tuple[str, str], ...]
    others: tuple[str, ...]


def home_page(
    session: Session, filters: BoardFilters, of_operator: str | None = None
) -> HomePage | None:
    """None where the filters ask for boards, or fewer than two hardware have a score."""
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
    mark = f"machine {machine.id[:8]}" if machine else "searched"
    chart = score_chart(found.scores, mine, f"◀ {mark}")
    if chart is None:
        return None
    parameters = {name: chosen[name] for name in chosen if name != "limit"}
    return HomePage(
        title="Leaderboard",
        json_href=address("/api/v1/leaderboard", {**chosen, "include": "scores"}),
        image_href=address("/card.png", parameters),
        heading=finding(asked, METRICS["throughput"], found.rankings, found.scores),
        filters=filters,
        machine=machine.id if machine else "",
        measured=sum(not one.published for one in found.scores),
        published=sum(one.published for one in found.scores),
        backed=backed(found.rankings),
        kept=tuple(hidden_fields(parameters, {"q"})),
        chart=chart,
        controls=controls(session, filters, parameters, found.boards, found.rankings),
        models=tuple((w.name, w.summary) for w in CATALOGUE if w.name not in SHORT_STEPS),
        others=SHORT_STEPS,
    )


def _named(scores: Sequence[HardwareScore], filters: BoardFilters) -> set[str]:
    search = filters.criteria.search
    of_one = (one for one in scores if search.is_of_one)
    return {one.hardware_slug for one in of_one if search.names(one.hardware_slug)}


def score_chart(
    scores: Sequence[HardwareScore], mine: Collection[str] = (), mark: str = ""
) -> DotPlot | None:
    """All hardware by score, ``mine`` (slugs) ringed, with ``mark``; None if only the baseline has
    a score."""
    if all(_is_baseline(one) for one in scores):
        return None
    rows = [
        Row(
            label=one.hardware,
            href=f"/hardware/{one.hardware_slug}",
            values=(
                Value(
                    one.score.value,
                    one.score.value_low,
                    one.score.value_high,
                    vendor(one.hardware),
                    f"{one.hardware}: {people.ratio(one.score.value)}",
                    hollow=not one.score.complete or one.score.backing == "one",
                ),
            ),
            text=people.ratio(one.score.value),
            note=mark if one.hardware_slug in mine else _note(one),
            ringed=one.hardware_slug in mine,
            pinned=_is_baseline(one) or one.hardware_slug in mine,
            item=one.hardware_slug,
        )
        for one in scores
        if one.score.value is not None
    ]
    baseline = scores[0].score.baseline
    hollow = any(value.hollow for row in rows for value in row.values)
    key = "; hollow: one owner, or not all workloads" if hollow else ""
    return dot_plot(
        f"Speed in multiples of {baseline}{key}", rows, UNFOLDED_ROWS // (2 if mine else 1)
    )


def _is_baseline(one: HardwareScore) -> bool:
    return one.hardware_slug == one.score.baseline_slug


def _note(one: HardwareScore) -> str:
    if _is_baseline(one):
        return "baseline"
    return f"{one.score.covered} of {one.score.terms}" if one.score.missing else ""
