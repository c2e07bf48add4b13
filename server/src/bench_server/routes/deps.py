"""What routes are handed: the store, a session, the time, and a body within its limits."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlmodel import Session

from bench_protocol.strict_json import MAX_BYTES

from ..db import Store
from ..problems import BodyTooLarge, Problem, WrongMediaType

MEDIA_TYPES = ("application/json", "application/vnd.dsse.envelope.v1+json")


async def _store(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


def _reading(request: Request) -> Iterator[Session]:
    store: Store = request.app.state.store
    with store.reading() as session:
        yield session


async def _now(request: Request) -> datetime:
    clock: Callable[[], datetime] = request.app.state.clock
    return clock()


async def _body(request: Request) -> bytes:
    """Read the body, stopping at the limit: a longer one is refused before it is read.

    Raises:
        WrongMediaType: not JSON by its own account.
        BodyTooLarge: more than 2 MiB, announced or sent.
    """
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type not in MEDIA_TYPES:
        raise WrongMediaType(
            f"content type is {media_type[:100]!r}",
            field="Content-Type",
            mend=f"send {' or '.join(MEDIA_TYPES)}",
        )
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and len(announced) < 20 and int(announced) > MAX_BYTES:
        raise _too_large(f"{announced} bytes")
    chunks, length = [], 0
    async for chunk in request.stream():
        length += len(chunk)
        if length > MAX_BYTES:
            raise _too_large("longer")
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large(what: str) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body is {what}, the limit is {MAX_BYTES}",
        field="body",
        mend="send one envelope of at most 2 MiB",
    )


StoreDep = Annotated[Store, Depends(_store)]
Reading = Annotated[Session, Depends(_reading)]
Now = Annotated[datetime, Depends(_now)]
Body = Annotated[bytes, Depends(_body)]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, for OpenAPI."""
    content = {"application/problem+json": {"schema": Problem.model_json_schema()}}
    return {
        status: {"description": "a problem document (RFC 9457)", "content": content}
        for status in statuses
    }


def json_body(schema: dict[str, Any]) -> dict[str, Any]:
    """The body of a route that reads it as bytes, for OpenAPI."""
    content = {media_type: {"schema": schema} for media_type in MEDIA_TYPES}
    return {"requestBody": {"required": True, "content": content}}
