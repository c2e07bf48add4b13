"""``/workloads/{name}``: one workload and its fastest hardware."""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.workloads import Workload

from ...answers import leaderboard, query_names
from ...answers.board_filters import BoardFilters
from ...answers.parameters import WORKLOADS
from ...answers.types.leaderboard import Board, WorkloadAnswer, workload_answer
from ...errors import NotFound
from ..description_lists import Fact
from .board_finding import finding, rests_on
from .board_links import METRICS
from .common import Page, address


@dataclass(frozen=True)
class WorkloadPage(Page):
    """``/workloads/{name}``: what does this workload train, and which hardware is fastest?"""

    image_href: str
    workload: WorkloadAnswer
    layers: tuple[Fact, ...]
    board: Board
    heading: str
    rests_on: str


def workload_called(name: str) -> Workload:
    """Raises NotFound if the catalogue has none of this name."""
    workload = next((workload for workload in CATALOGUE if workload.name == name), None)
    if workload is None:
        raise NotFound(
            f"no workload {name[:64]!r}",
            field="name",
            hint=f"there are {', '.join(WORKLOADS)}",
            near=query_names.nearest(name[:64], WORKLOADS),
        )
    return workload


def workload_page(session: Session, name: str, of_operator: str | None) -> WorkloadPage:
    """Fill the context. Raises NotFound if the catalogue has no such workload."""
    workload = workload_called(name)
    answer = workload_answer(workload)
    filters = BoardFilters.model_validate({"workload": name, "limit": 10})
    boards, _, rankings = leaderboard.leaderboard(session, filters, of_operator)
    return WorkloadPage(
        title=name,
        json_href=address("/api/v1/leaderboard", {"workload": name}),
        image_href=f"/workloads/{name}/card.png",
        workload=answer,
        layers=tuple(_layer(layer) for layer in answer.layers),
        board=boards[0],
        heading=finding(filters, METRICS["throughput"], rankings, ()),
        rests_on=rests_on(rankings, filters),
    )


def _layer(layer: dict[str, Any]) -> Fact:
    rest = ", ".join(
        f"{name} {len(value) if isinstance(value, list) else value}"
        for name, value in layer.items()
        if name != "kind" and value is not None
    )
    return Fact(str(layer["kind"]).replace("_", " "), rest or "no parameters")
