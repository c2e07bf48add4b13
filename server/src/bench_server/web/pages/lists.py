"""``/hardware``, ``/machines`` and ``/results``: searchable lists, page by page."""

from dataclasses import dataclass

from pydantic import BaseModel
from sqlmodel import Session

from ...answers import hardware, machines, query_names, stored_results
from ...answers.criteria import Search
from ...answers.filters import ListPageFilters, MachineListPageFilters, ResultListFilters
from ...answers.parameters import WORKLOADS
from ...answers.types.results import ResultAnswer, result_fields
from .board_links import hidden_fields
from .common import Choice, Page, address, choices

STATES = (("measured", "measured"), ("failed", "failed"))
Rows = tuple[hardware.HardwareSummary, ...] | tuple[machines.MachineSummary, ...]
RANKED = (("true", "ranked"), ("false", "not ranked"))


@dataclass(frozen=True)
class ListPage(Page):
    """``/hardware``, ``/machines``: which have ranked results?"""

    q: str
    rows: Rows
    next_href: str | None


@dataclass(frozen=True)
class ResultListPage(Page):
    """``/results``: which results are here? ``kept``: filters that are no fields of the form."""

    csv_href: str
    q: str
    received_after: str
    rows: tuple[ResultAnswer, ...]
    next_href: str | None
    workloads: tuple[Choice, ...]
    frameworks: tuple[Choice, ...]
    states: tuple[Choice, ...]
    ranked: tuple[Choice, ...]
    kept: tuple[tuple[str, str], ...]


def hardware_list(session: Session, filters: ListPageFilters) -> ListPage:
    page = hardware.hardware_page(session, filters)
    return _list("Hardware", "/hardware", filters, page.hardware, page.next_cursor)


def machine_list(session: Session, filters: MachineListPageFilters) -> ListPage:
    page = machines.machine_page(session, filters)
    return _list("Machines", "/machines", filters, page.machines, page.next_cursor)


def list_with(session: Session, words: str) -> str | None:
    """The address of the list that has what these words name: machines, else results."""
    asked = {"q": words, "limit": 1}
    if machines.machine_page(session, MachineListPageFilters.model_validate(asked)).machines:
        return address("/machines", {"q": words})
    results = ResultListFilters.model_validate(asked)
    if Search(words).is_id and stored_results.results_page(session, results)[0]:
        return address("/results", {"q": words})
    return None


def _list(
    title: str,
    path: str,
    filters: ListPageFilters | MachineListPageFilters,
    rows: Rows,
    cursor: str | None,
) -> ListPage:
    here = _address(f"/api/v1{path}", filters)
    return ListPage(title, here, filters.q or "", rows, _next(path, filters, cursor))


def result_list(session: Session, filters: ResultListFilters) -> ResultListPage:
    """Fill the context. Raises InvalidQuery if a framework or hardware is unknown."""
    query_names.require_known(session, filters)
    rows, cursor = stored_results.results_page(session, filters)
    chosen = filters.model_dump(mode="json", exclude_defaults=True)
    fields = ("q", "workload", "framework", "status", "ranked", "received_after")
    frameworks = query_names.frameworks(session)
    ranked = "" if filters.ranked is None else str(filters.ranked).lower()
    return ResultListPage(
        title="Results",
        json_href=_address("/api/v1/results", filters),
        csv_href=address(
            "/api/v1/export.csv",
            {
                name: chosen[name]
                for name in chosen
                if name not in ("cursor", "limit", "sort", "verdicts")
            },
        ),
        q=filters.q or "",
        received_after=f"{filters.received_after:%Y-%m-%d}" if filters.received_after else "",
        rows=tuple(ResultAnswer(**result_fields(*row)) for row in rows),
        next_href=_next("/results", filters, cursor),
        workloads=choices(zip(WORKLOADS, WORKLOADS, strict=True), filters.workload),
        frameworks=choices(zip(frameworks, frameworks, strict=True), filters.framework),
        states=choices(STATES, filters.status),
        ranked=choices(RANKED, ranked),
        kept=tuple(hidden_fields(chosen, fields)),
    )


def _address(path: str, filters: BaseModel) -> str:
    chosen = filters.model_dump(mode="json", exclude_defaults=True)
    words = {n: str(v).lower() if isinstance(v, bool) else v for n, v in chosen.items()}
    return address(path, words)


def _next(path: str, filters: BaseModel, cursor: str | None) -> str | None:
    return _address(path, filters.model_copy(update={"cursor": cursor})) if cursor else None
