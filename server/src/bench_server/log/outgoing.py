"""One POST to another server: bounded in time and size, and its failure is one line."""

import time
from http.client import HTTPException, HTTPResponse
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
MAX_ANSWER_BYTES = 128 * 1024
CHUNK_BYTES = 8 * 1024


class NoAnswer(RuntimeError):
    """Another server gave no usable answer; the message says what, in one line."""


class Answer(NamedTuple):
    """An HTTP status and body."""

    status: int
    body: bytes


def post(url: str, body: bytes, media_type: str, seconds: float = ANSWER_SECONDS) -> Answer:
    """Post a document; an answer of any status is an answer.

    Args:
        seconds: the time that the whole answer may take.

    Raises:
        NoAnswer: the server cannot be reached, is too slow, or says too much.
    """
    request = Request(url, body, {"Content-Type": media_type})  # noqa: S310 - settings allow http(s)
    ends = time.monotonic() + seconds
    try:
        try:
            response = urlopen(request, timeout=min(CONNECT_SECONDS, seconds))  # noqa: S310
        except HTTPError as error:
            with error:
                return Answer(error.code, error.read(CHUNK_BYTES))
        with response:
            return Answer(response.status, _read(response, ends))
    except (OSError, HTTPException, ValueError) as error:
        words = str(error) or type(error).__name__
        raise NoAnswer(f"{url} does not answer: {' '.join(words.split())}") from None


def _read(response: HTTPResponse, ends: float) -> bytes:
    parts, size = [], 0
    while part := response.read1(CHUNK_BYTES):
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise OSError(f"more than {MAX_ANSWER_BYTES:,} bytes")
        if time.monotonic() > ends:
            raise OSError("the answer takes too long")
    return b"".join(parts)
