"""The OpenAPI document: FastAPI's, with the meaning of each field, and errors as they are sent."""

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from fastapi import FastAPI

from .problems import MEDIA_TYPE, Problem
from .rate_limit import OPEN_PATHS

MEANINGS = Path(__file__).with_name("meanings.toml")
DESCRIPTION = (
    "Everything that the pages show, and everything that was signed. Reading needs no key, and any "
    "origin may read. Errors are problem documents (RFC 9457). /docs is this document for people."
)
TAGS = {
    "results": "post results, list them, read what was signed",
    "workloads": "what is trained",
    "ranking": "leaderboards and comparisons",
    "hardware and machines": "one hardware or machine with all of its figures",
    "studies": "frameworks, CPU against GPU, batch sizes, versions",
    "exports": "the same answers as CSV, JSON lines or Parquet",
    "keys": "enroll and revoke keys, challenges, decisions about one's own results",
    "log": "the append-only log of everything accepted",
    "health": "for load balancers and monitoring",
}
PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
# A line of the answer to many results.
LINE = {
    "type": "object",
    "description": "The answer to one line of a request with many results.",
    "required": ["line", "status"],
    "properties": {
        "line": {"type": "integer"},
        "status": {"type": "integer"},
        "result": {"$ref": "#/components/schemas/SubmitAnswer"},
        "problem": {"$ref": "#/components/schemas/Problem"},
    },
}
REFUSALS = {
    "401": "this server requires its read token",
    "429": "too many requests; Retry-After says when to try again",
    "500": "an error of the server",
    "503": "the database does not answer, or needs a migration",
}
# FastAPI adds these for its own error handler, which this server replaces.
UNUSED = ("HTTPValidationError", "ValidationError")


def install(app: FastAPI) -> None:
    """Complete the document once, by one thread: FastAPI's generator fails in two at once."""
    generate, lock = app.openapi, Lock()

    def openapi() -> dict[str, Any]:
        with lock:
            if app.openapi_schema is None:
                complete(generate())
            return generate()

    app.openapi = openapi  # type: ignore[method-assign]


def complete(document: dict[str, Any]) -> None:
    """Add meanings and errors to a document, in place."""
    schemas = document["components"]["schemas"]
    for name in UNUSED:
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema()
    schemas["Line"] = LINE
    for path, method, operation in operations(document):
        responses = operation["responses"]
        if not path.startswith(OPEN_PATHS):
            asked = ("401",) if method == "get" else ()
            for status in (*asked, "429", "500", "503"):
                responses.setdefault(status, {"description": REFUSALS[status]})
        for status, answer in responses.items():
            if status >= "400":
                answer["content"] = PROBLEM
        operation["responses"] = dict(sorted(responses.items()))
    for name, schema in schemas.items():
        for field, value in schema.get("properties", {}).items():
            if meaning := meaning_of(name, field):
                value["description"] = meaning


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def meaning_of(schema: str, field: str) -> str | None:
    """What a field of an answer means; null if nobody wrote it."""
    own = meanings().get(schema, {}).get(field)
    return own or meanings()["any"].get(field)


@cache
def meanings() -> dict[str, dict[str, str]]:
    """Meanings by type and field; ``any``: of every type without its own."""
    return tomllib.loads(MEANINGS.read_text("utf-8"))
