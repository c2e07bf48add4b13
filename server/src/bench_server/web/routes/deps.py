"""Dependencies of routes: store, session, clock, and request bodies within their limits."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple, TypeVar

from anyio import CancelScope, CapacityLimiter, fail_after, to_thread
from anyio.lowlevel import RunVar
from fastapi import Depends, Request
from sqlmodel import Session

from bench_protocol.base.strict_json import MAX_BYTES

from ...db.store import CONNECTIONS, Store
from ...errors import BodyTooLarge, TooManyExports, WrongMediaType
from ...log.server_keys import Authority
from ...settings import Settings
from ..client_networks import host_of, network
from ..turns import Turns

Done = TypeVar("Done")
MEDIA_TYPES = ("application/json", "application/vnd.dsse.envelope.v1+json")
NDJSON = "application/x-ndjson"
# Twice the bytes and ten times the envelopes that the agent sends at once.
BATCH_MAX_BYTES = 8 * 1024 * 1024
BATCH_MAX_LINES = 512
# The rest is for what needs a connection only while it has a thread.
READERS = CONNECTIONS // 2
# Readers that stream rows, for as long as their clients take.
EXPORTS = READERS // 2
EXPORTS_EACH = EXPORTS // 2
EXPORT_WAIT_SECONDS = 10.0
# Enrollments, challenges and acts at a time; each waits for the database's one writer.
WRITERS = 4
_READERS: RunVar[Turns] = RunVar("readers")
_EXPORTS: RunVar[Turns] = RunVar("exports")
_WRITERS: RunVar[Turns] = RunVar("writers")
ENVELOPES_HINT = "send envelopes of at most 2 MiB, and at most 8 MiB of them at once"


@asynccontextmanager
async def _session(request: Request) -> AsyncIterator[Session]:
    """At most READERS at a time: if sessions took all connections, all threads could wait for one,
    and none would be left to end a session."""
    async with _turns(_READERS, READERS).turn(network(host_of(request))):
        session = Session(request.app.state.store.reader)
        try:
            yield session
        finally:
            # Other threads may all wait for this one's connection.
            with CancelScope(shield=True):
                await to_thread.run_sync(session.close, limiter=CapacityLimiter(1))


async def _reading(request: Request) -> AsyncIterator[Session]:
    """A session until the route returns: a client that reads its answer slowly holds none."""
    async with _session(request) as session:
        yield session


async def _exporting(request: Request) -> AsyncIterator[Session]:
    """A session until the answer is sent. Raises TooManyExports after EXPORT_WAIT_SECONDS."""
    exports, client = _turns(_EXPORTS, EXPORTS, EXPORTS_EACH), network(host_of(request))
    try:
        with fail_after(EXPORT_WAIT_SECONDS):
            await exports.take(client)
    except TimeoutError:
        raise TooManyExports(EXPORTS, EXPORTS_EACH) from None
    try:
        async with _session(request) as session:
            yield session
    finally:
        exports.release(client)


async def in_turn(request: Request, write: Callable[..., Done], *arguments: Any) -> Done:
    """Call a function that writes in a thread, when the request's network has its turn."""
    async with _turns(_WRITERS, WRITERS).turn(network(host_of(request))):
        return await to_thread.run_sync(write, *arguments)


def _turns(of_loop: RunVar[Turns], most: int, each: int | None = None) -> Turns:
    try:
        return of_loop.get()
    except LookupError:
        of_loop.set(made := Turns(most, each))
        return made


def _state(name: str) -> Callable[[Request], Awaitable[Any]]:
    async def read(request: Request) -> Any:
        return getattr(request.app.state, name)

    return read


async def _now(request: Request) -> datetime:
    clock: Callable[[], datetime] = request.app.state.clock
    return clock()


async def _body(request: Request) -> bytes:
    """At most 2 MiB of JSON. Raises WrongMediaType, or BodyTooLarge if longer."""
    _require_media_type(request, MEDIA_TYPES)
    return await _read(request, MAX_BYTES)


class Line(NamedTuple):
    """A line of NDJSON; ``number`` counts from 1, empty lines too."""

    number: int
    raw: bytes


async def documents(request: Request) -> bytes | list[Line]:
    """One document, or one a line of NDJSON, at most 8 MiB and 512 lines. A line longer than a
    document may be is refused when it is read. Raises WrongMediaType, BodyTooLarge."""
    if _media_type(request) != NDJSON:
        _require_media_type(request, (*MEDIA_TYPES, NDJSON))
        return await _read(request, MAX_BYTES)
    raw = await _read(request, BATCH_MAX_BYTES)
    lines = raw.count(b"\n") + (not raw.endswith(b"\n"))
    if lines > BATCH_MAX_LINES:
        raise BodyTooLarge(
            f"the body has {lines:,} lines, the limit is {BATCH_MAX_LINES:,}",
            field="body",
            hint=f"send at most {BATCH_MAX_LINES:,} envelopes at once",
        )
    return [Line(number, line) for number, line in enumerate(raw.split(b"\n"), 1) if line.strip()]


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


def _require_media_type(request: Request, allowed: tuple[str, ...]) -> None:
    media_type = _media_type(request)
    if media_type not in allowed:
        raise WrongMediaType(
            f"content type is {media_type[:100]!r}",
            field="Content-Type",
            hint=f"send {' or '.join(allowed)}",
        )


async def _read(request: Request, limit: int) -> bytes:
    """Refuses a compressed body, and a longer one without reading the rest."""
    coding = request.headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise WrongMediaType(
            f"the body has the content coding {coding[:100]!r}",
            field="Content-Encoding",
            hint="send it without one",
        )
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and len(announced) < 20 and int(announced) > limit:
        raise _too_large(f"{announced} bytes", limit)
    chunks, length = [], 0
    async for chunk in request.stream():
        length += len(chunk)
        if length > limit:
            raise _too_large("longer", limit)
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large(what: str, limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body is {what}, the limit is {limit}", field="body", hint=ENVELOPES_HINT
    )


StoreDep = Annotated[Store, Depends(_state("store"))]
Reading = Annotated[Session, Depends(_reading, scope="function")]
Exporting = Annotated[Session, Depends(_exporting, scope="request")]
AuthorityDep = Annotated[Authority, Depends(_state("authority"))]
SettingsDep = Annotated[Settings, Depends(_state("settings"))]
Now = Annotated[datetime, Depends(_now)]
Body = Annotated[bytes, Depends(_body)]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, for OpenAPI; :mod:`..openapi` adds their schema."""
    return {status: {"description": HTTPStatus(status).phrase.lower()} for status in statuses}


def json_body(
    schema: dict[str, Any], example: Any, media_types: tuple[str, ...] = MEDIA_TYPES
) -> dict[str, Any]:
    """The body of a route that reads it as bytes, for OpenAPI."""
    content = {media_type: {"schema": schema, "example": example} for media_type in media_types}
    return {"requestBody": {"required": True, "content": content}}


def envelope_example(payload_type: str) -> dict[str, Any]:
    """An example of an envelope, with an empty payload and an invalid signature."""
    signature = {"keyid": "0f1e2d3c4b5a6978" * 4, "sig": "A" * 86 + "=="}
    return {"payloadType": payload_type, "payload": "e30=", "signatures": [signature]}
