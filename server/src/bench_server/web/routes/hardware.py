"""Routes of hardware, machines and owners, and ``/api/v1/asks``: what is wanted again."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from ...answers import asks, machines, owners
from ...answers import hardware as hardware_answers
from ...answers.filters import HistoryFilters, ListFilters, MachineListFilters
from ...answers.history import HistoryAnswer, history
from ...answers.parameters import HardwareSlug, OwnerName
from ...answers.parameters import MachineId as AnyMachine
from ...answers.prices import Prices
from ...answers.published import PublishedAnswer, published_figures
from .compare import PRICE_PARAMETER, PricesDep
from .deps import Reading, SettingsDep, problems
from .listing import next_page

router = APIRouter(prefix="/api/v1", tags=["hardware and machines"])
Slug = Annotated[
    HardwareSlug, Path(description="a hardware's slug", examples=["apple-m2-max-30-core-gpu"])
]
OwnerLabel = Annotated[OwnerName, Path(description="an owner's name", examples=["Basel lab"])]
MachineId = Annotated[AnyMachine, Path(description="a machine's id", examples=["0f1e2d3c4b5a6978"])]


@router.get("/hardware", summary="Measured hardware, by slug", responses=problems(422))
def list_hardware(
    request: Request, response: Response, session: Reading, filters: Annotated[ListFilters, Query()]
) -> hardware_answers.HardwarePage:
    page = hardware_answers.hardware_page(session, filters)
    response.headers.update(next_page(request, page.next_cursor))
    return page


@router.get(
    "/hardware/{slug}",
    summary="One hardware: its score and its figure in every workload and set-up",
    responses=problems(404, 422),
    openapi_extra={"parameters": [PRICE_PARAMETER]},
)
def get_hardware(
    session: Reading, settings: SettingsDep, prices: PricesDep, slug: Slug
) -> hardware_answers.HardwareAnswer:
    return hardware_answers.hardware(session, slug, settings.baseline, prices)


@router.get("/published", summary="Published figures that were imported, with their source")
def list_published_figures(session: Reading) -> list[PublishedAnswer]:
    return published_figures(session)


@router.get("/machines", summary="Measured machines, by id", responses=problems(422))
def list_machines(
    request: Request,
    response: Response,
    session: Reading,
    filters: Annotated[MachineListFilters, Query()],
) -> machines.MachinePage:
    page = machines.machine_page(session, filters)
    response.headers.update(next_page(request, page.next_cursor))
    return page


@router.get(
    "/machines/{machine_id}",
    summary="One machine: its facts and its figure in every workload and set-up",
    responses=problems(404, 422),
)
def get_machine(
    session: Reading, settings: SettingsDep, machine_id: MachineId
) -> machines.MachineAnswer:
    return machines.machine(session, machine_id, Prices({}, settings.prices))


@router.get(
    "/owners/{owner:path}",
    summary="One owner: its machines, and what the last update changed on each",
    responses=problems(404, 422),
)
def get_owner(session: Reading, owner: OwnerLabel) -> owners.OwnerAnswer:
    return owners.owner(session, owner)


@router.get(
    "/machines/{machine_id}/history",
    summary="One machine in one workload and set-up over time, and what changed it",
    responses=problems(404, 422),
)
def get_machine_history(
    session: Reading, machine_id: MachineId, filters: Annotated[HistoryFilters, Query()]
) -> HistoryAnswer:
    return history(session, machine_id, filters)


@router.get(
    "/asks",
    summary="Set-ups that are wanted again, drawn daily, the most wanted first",
    responses=problems(422),
)
def list_asks(
    session: Reading,
    hardware: Annotated[
        HardwareSlug | None,
        Query(description="a hardware's slug", examples=["apple-m2-max-30-core-gpu"]),
    ] = None,
) -> asks.AsksAnswer:
    return asks.asks(session, hardware)
