"""``/docs``: documentation of the API, from its OpenAPI document."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from ...answers import leaderboard
from ...answers.board_filters import BoardFilters
from ...answers.parameters import WORKLOADS

# Fields of a row that the sample answer shows.
SAMPLE = (
    *("rank", "hardware", "hardware_slug", "workload", "framework", "device", "recipe"),
    *("batch_size", "samples_per_second", "samples_per_second_low", "samples_per_second_high"),
    *("epoch_seconds", "speed_up", "owners", "trust_level"),
)


@dataclass(frozen=True)
class Operation:
    """One operation of the API. ``parameters``: name, location, values and limits, meaning,
    example. ``answer``: the type of its JSON."""

    method: str
    path: str
    summary: str
    parameters: tuple[tuple[str, str, str, str, str], ...]
    statuses: tuple[str, ...]
    answer: str | None


@dataclass(frozen=True)
class AnswerType:
    """A type of the answers. ``fields``: name, type, meaning."""

    name: str
    fields: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class DocsPage:
    """``/docs``: which queries does the API have? ``sample``: an answer of this server, shortened,
    null while it has no results."""

    title: str
    json_href: str
    groups: tuple[tuple[str, tuple[Operation, ...]], ...]
    types: tuple[AnswerType, ...]
    sample: str | None


def docs_page(openapi: dict[str, Any], sample: str | None) -> DocsPage:
    groups: dict[str, list[Operation]] = {}
    for path, methods in openapi["paths"].items():
        for method, spec in methods.items():
            parameters = tuple(
                (
                    p["name"],
                    p["in"],
                    _words(p["schema"]).removesuffix(" or null"),
                    p.get("description", ""),
                    _example(p["schema"]["examples"][0]),
                )
                for p in spec.get("parameters", ())
            )
            operation = Operation(
                method.upper(),
                path,
                spec["summary"],
                parameters,
                tuple(sorted(spec["responses"])),
                _answer(spec["responses"]),
            )
            groups.setdefault(spec["tags"][0], []).append(operation)
    schemas = openapi["components"]["schemas"]
    return DocsPage(
        "API",
        "/openapi.json",
        tuple((tag, tuple(routes)) for tag, routes in groups.items()),
        tuple(AnswerType(name, tuple(_fields(schemas[name]))) for name in sorted(schemas)),
        sample,
    )


def sample(session: Session) -> str | None:
    """The first row of the first board with one, as JSON with some of its fields."""
    filters = BoardFilters.model_validate({"workload": WORKLOADS[0], "limit": 1})
    (board,) = leaderboard.leaderboard(session, filters).boards
    if not board.rows:
        return None
    values = {name: getattr(board.rows[0], name) for name in SAMPLE}
    row = {n: round(v, 3) if isinstance(v, float) else v for n, v in values.items()}
    shown = json.dumps({"rows": [row]}, indent=2, ensure_ascii=False)
    return shown.replace("\n    }", ",\n      ...\n    }", 1)


def _answer(responses: dict[str, Any]) -> str | None:
    """The type of an operation's JSON, if it has a name."""
    for status in ("200", "201"):
        content = responses.get(status, {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        reference = schema.get("$ref") or schema.get("items", {}).get("$ref")
        if reference:
            return _name(reference)
    return None


def _fields(schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, value in schema.get("properties", {}).items():
        yield name, _words(value), value.get("description", "")


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _words(schema: dict[str, Any]) -> str:
    """A schema in a few words: ``cpu | cuda | metal``, ``number or null``, ``list of BoardRow``,
    ``integer, 1 to 200; default 50``."""
    if "$ref" in schema:
        return _name(schema["$ref"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_words, schema["anyOf"])))
    if "enum" in schema:
        words = " | ".join(map(str, schema["enum"]))
    elif schema.get("type") == "array":
        most = f"at most {schema['maxItems']} of" if "maxItems" in schema else "list of"
        words = f"{most} {_words(schema.get('items') or {})}"
    elif schema.get("format") == "date-time":
        words = "time"
    else:
        words = ", ".join(
            [str(schema.get("const") or schema.get("type") or "any"), *_limits(schema)]
        )
    return f"{words}; default {schema['default']}" if schema.get("default") else words


def _limits(schema: dict[str, Any]) -> Iterator[str]:
    """The limits of a schema, in words."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        yield f"above {schema['exclusiveMinimum']}"
    if low is not None and high is not None:
        yield f"{low:,} to {high:,}"
    elif high is not None:
        yield f"at most {high:,}"
    if "maxLength" in schema:
        yield f"at most {schema['maxLength']:,} characters"
    if "pattern" in schema:
        yield f"matching {schema['pattern']}"


def _example(value: Any) -> str:
    """An example value as in an address; the first of a list."""
    if isinstance(value, list):
        return _example(value[0])
    return str(value).lower() if isinstance(value, bool) else str(value)
