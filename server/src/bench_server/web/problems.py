"""Error answers: ``application/problem+json`` (RFC 9457), or a page for browsers. Every refusal has
a stable ``code``, the offending ``field`` and the remedy (``hint``)."""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import DatabaseError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bench_protocol.base.errors import ProtocolError

from ..answers.query_names import hint_of, nearest
from ..db.store import UNAVAILABLE, is_damage
from ..errors import DamagedDatabase, InvalidQuery, Refusal
from . import refused_values
from .canonical import Moved
from .every_answer import SECURITY_HEADERS
from .render import error_page

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """The body of every error answer (RFC 9457)."""

    type: str = Field(examples=["urn:trainmark:problem:invalid_field"])
    title: str
    status: int
    detail: str
    code: str
    field: str
    hint: str


STATUS_OF_CODE = {
    "malformed_json": 400,
    "invalid_envelope": 400,
    "bad_signature": 403,
    "unknown_key": 403,
}


HINT_OF_STATUS = {
    400: "send what docs/protocol.md describes, as one JSON document",
    403: "enroll the key, and sign exactly the bytes that are sent",
    404: "/docs lists every address; GET /api/v1/leaderboard and /api/v1/results list what is here",
    410: "its sender can show a hidden result again; a withdrawn one is erased",
    405: "use one of the methods that the header Allow names",
    415: "send application/json",
    422: "fix this parameter or field; /docs lists all of them with their limits",
    500: "tell the server's operator; bench-server verify-log says whether the database is damaged",
}
# Titles of pages; a problem document has the phrase of HTTP.
TITLES = {
    400: "This request has a mistake",
    401: "This server is private",
    403: "This is not allowed",
    404: "Page not found",
    405: "This address cannot be used that way",
    410: "This result is not shown any more",
    422: "This address has a mistake",
    429: "Too many requests",
    500: "The server made a mistake",
    503: "The server is not ready",
}
# Addresses that people type, and the page that has the content.
ALSO_CALLED = {
    "/leaderboard": "/",
    "/workloads": "/",
    "/api": "/docs",
    "/api/v1": "/docs",
    "/versions": "/trends",
    "/documents": "/methodology",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
LOST = "The address may be mistyped, or what it names may be on another server."


def problem(status: int, code: str, detail: str, field: str = "", hint: str = "") -> Problem:
    """Build a problem; members that follow from others are filled in."""
    return Problem(
        type=f"urn:trainmark:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        field=field,
        hint=hint or HINT_OF_STATUS.get(status, "see /docs"),
    )


def answer(
    request: Request,
    document: Problem,
    headers: dict[str, str] | None = None,
    near: Sequence[str] = (),
) -> Response:
    """JSON, or a page if a browser asks outside the API; ``near``: addresses that it links to."""
    wants_page = "text/html" in request.headers.get("accept", "")
    if wants_page and not request.url.path.startswith("/api/"):
        # Hints are for programs; pages have the same lists at their own addresses.
        hint = document.hint.replace("GET /api/v1/leaderboard", "/").replace("GET /api/v1/", "/")
        hint = LOST if document.hint == HINT_OF_STATUS[404] else hint
        title = TITLES.get(document.status, document.title)
        page = error_page(request, document.status, title, document.detail, hint, near)
        page.headers.update(headers or {})
        return page
    return JSONResponse(document.model_dump(), document.status, headers, MEDIA_TYPE)


def problem_of(error: ProtocolError) -> Problem:
    status = getattr(error, "status", None) or STATUS_OF_CODE.get(error.code, 422)
    return problem(status, error.code, error.detail[:2000], error.field, error.hint)


def refusal(request: Request, error: ProtocolError) -> Response:
    if not isinstance(error, Refusal) and request.method == "GET":
        # Nothing was sent, so a stored document is not what it was.
        error = DamagedDatabase(f"{error.code}: {error}")
    if isinstance(error, DamagedDatabase):
        logger.error("%s: %.400s", request.url.path, error)
    wait = getattr(error, "retry_after_seconds", None)
    headers = {"Retry-After": str(wait)} if wait else None
    near = _addresses_with(request, error.field, getattr(error, "near", ()))
    return answer(request, problem_of(error), headers, near)


def unavailable(request: Request, error: Exception) -> Response:
    if is_damage(error):
        return refusal(request, DamagedDatabase(str(getattr(error, "orig", error))))
    document = problem(
        503, "database_unavailable", "the database does not answer", hint="try again later"
    )
    return answer(request, document, {"Retry-After": "5"})


def ending(request: Request) -> Response:
    document = problem(503, "server_ends", "the server ends", hint="try again in some seconds")
    return answer(request, document, {"Retry-After": "5"})


def _addresses_with(request: Request, field: str, names: Sequence[str]) -> list[str]:
    """The address of the request with each of these names instead of the field's value."""
    if wanted := request.path_params.get(field):
        before = request.scope["path"].removesuffix(wanted)
        return [before + quote(name) for name in names]
    if field not in request.query_params:
        return []
    url = request.url
    return [f"{url.path}?{url.include_query_params(**{field: name}).query}" for name in names]


def _pages_near(request: Request) -> Sequence[str]:
    path = request.url.path.rstrip("/")
    if path in ALSO_CALLED:
        return [ALSO_CALLED[path]]
    kind = path.startswith("/api/")
    paths: frozenset[str] = request.app.state.paths
    return nearest(path, [p for p in paths if "{" not in p and p.startswith("/api/") is kind])


class UnsatisfiedRanges:
    """Middleware: a range beyond the end of a file is a problem."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = False

        async def sent(message: Message) -> None:
            nonlocal refused
            if message.get("status") == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                refused = True
                has = MutableHeaders(scope=message).get("content-range", "")
                document = problem(
                    *(416, "range_not_satisfiable", f"the file has {has.rpartition('/')[2]} bytes"),
                    *("Range", "ask for a range within it, or for all"),
                )
                await answer(Request(scope), document, {"Content-Range": has})(scope, receive, send)
            elif not refused:
                await send(message)

        await self.app(scope, receive, sent)


def install(app: FastAPI) -> None:
    """Install the exception handlers: every kind of error becomes a problem."""
    app.exception_handler(ProtocolError)(refusal)

    @app.exception_handler(RequestValidationError)
    def _validation(request: Request, error: RequestValidationError) -> Response:
        errors: Sequence[dict[str, Any]] = error.errors()
        # The first two parts name the parameter; the rest are pydantic's own alternatives.
        field = str(errors[0]["loc"][:2][-1])
        about = (item for item in errors if str(item["loc"][:2][-1]) == field)
        messages = dict.fromkeys(map(refused_values.words, about))
        near = refused_values.listed(errors[0])
        meant = near or refused_values.meant(request, errors)
        document = problem(
            422,
            InvalidQuery.code,
            f"{field}: {'; or '.join(messages)}"[:2000],
            field,
            hint_of(meant, HINT_OF_STATUS[422]),
        )
        return answer(request, document, near=_addresses_with(request, field, near))

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> Response:
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "refused")
        detail = f"{request.method} {request.url.path}: {error.detail}"
        headers = dict(error.headers or {})
        field = {404: "path", 405: "method"}.get(error.status_code, "")
        near: tuple[str, ...] = ()
        hint = ""
        if error.status_code == 404:
            detail = f"this server has no address {request.url.path}"
            near = tuple(_pages_near(request))
            hint = hint_of(near, HINT_OF_STATUS[404])
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_methods(request))
            if request.method == "OPTIONS":
                return Response(status_code=204, headers=headers)
        document = problem(error.status_code, code, detail[:2000], field, hint)
        return answer(request, document, headers, near)

    @app.exception_handler(Moved)
    def _moved(_request: Request, moved: Moved) -> Response:
        # RedirectResponse would quote the address again.
        return Response(status_code=302, headers={"Location": moved.address})

    @app.exception_handler(ClientDisconnect)
    def _left(_request: Request, _error: ClientDisconnect) -> Response:
        # Nobody reads it, and nothing is logged: the client left before its body was complete.
        return Response(status_code=HTTPStatus.REQUEST_TIMEOUT)

    for each in UNAVAILABLE:
        app.exception_handler(each)(unavailable)

    @app.exception_handler(DatabaseError)
    def _database(request: Request, error: DatabaseError) -> Response:
        if not is_damage(error):
            raise error
        return unavailable(request, error)

    @app.exception_handler(Exception)
    def _bug(request: Request, _error: Exception) -> Response:
        # The traceback goes to the log (Starlette raises it again), never to the client.
        words = "the server made a mistake, or a stored row is damaged"
        sent = answer(request, problem(500, "internal_error", words))
        sent.headers.update(SECURITY_HEADERS)
        return sent


def _methods(request: Request) -> list[str]:
    """Each route knows its own methods only. HEAD is allowed with GET, OPTIONS everywhere."""
    # In a mounted application the root path is the mount's.
    root = request.scope.get("app_root_path", request.scope.get("root_path", ""))

    def answers(method: str) -> bool:
        scope = {**request.scope, "root_path": root, "method": method}
        return any(
            method == "GET" if isinstance(route, Mount) else True
            for route in request.app.routes
            if route.matches(dict(scope))[0] == Match.FULL
        )

    asked = {"HEAD": "GET"}
    return [m for m in METHODS if m == "OPTIONS" or answers(asked.get(m, m))]
