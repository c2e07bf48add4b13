"""``/docs``: documentation of the API, from its OpenAPI document; ``/docs/TYPE``: its types."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlmodel import Session

from ...answers import leaderboard, query_names
from ...answers.board_filters import BoardFilters
from ...answers.parameters import WORKLOADS
from ...answers.types.leaderboard import Board
from ...errors import NotFound
from .common import Page

# Fields of a row that the sample answer shows.
SAMPLE = (
    *("rank", "hardware", "hardware_slug", "workload", "framework", "device", "recipe"),
    *("batch_size", "samples_per_second", "samples_per_second_low", "samples_per_second_high"),
    *("epoch_seconds", "speed_up", "owners", "trust_level"),
)


class Parameter(NamedTuple):
    """A parameter of queries: its values with their limits, its meaning, and an example."""

    name: str
    values: str
    meaning: str
    example: str


@dataclass(frozen=True)
class Operation:
    """``parameters``: those of it alone; ``shared``: the others, as indices of the page's."""

    method: str
    path: str
    summary: str
    parameters: tuple[Parameter, ...]
    shared: tuple[int, ...]
    answer: str | None


@dataclass(frozen=True)
class DocsPage(Page):
    """``/docs``: which queries does the API have? ``sample``: a short answer of this server."""

    shared: tuple[Parameter, ...]
    groups: tuple[tuple[str, tuple[Operation, ...]], ...]
    sample: str | None
    compared_slugs: str | None


@dataclass(frozen=True)
class TypePage(Page):
    """``/docs/TYPE``: what does each field of this answer mean? ``parts``: types of its fields."""

    fields: tuple[tuple[str, str, str], ...]
    parts: tuple[str, ...]


def docs_page(openapi: dict[str, Any], board: Board) -> DocsPage:
    every = [
        (method, path, spec, [_parameter(one) for one in spec.get("parameters", ())])
        for path, methods in openapi["paths"].items()
        for method, spec in methods.items()
    ]
    uses = Counter(one for *_, parameters in every for one in parameters)
    shared = sorted(one for one, count in uses.items() if count > 1)
    groups: dict[str, list[Operation]] = {}
    for method, path, spec, parameters in every:
        operation = Operation(
            method.upper(),
            path,
            spec["summary"],
            tuple(one for one in parameters if uses[one] == 1),
            tuple(shared.index(one) for one in parameters if uses[one] > 1),
            _answer(spec["responses"]),
        )
        groups.setdefault(spec["tags"][0], []).append(operation)
    return DocsPage(
        "API",
        "/openapi.json",
        tuple(shared),
        tuple((tag, tuple(operations)) for tag, operations in groups.items()),
        _sample(board),
        ",".join(row.hardware_slug for row in board.rows) if len(board.rows) > 1 else None,
    )


def type_page(openapi: dict[str, Any], name: str) -> TypePage:
    """Raises NotFound if there is no type of this name."""
    schemas = openapi["components"]["schemas"]
    if name not in schemas:
        near = query_names.nearest(name[:100], schemas)
        raise NotFound(f"no type {name[:100]!r}", field="name", near=near)
    parts = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(schemas[name])))
    return TypePage(name, "/openapi.json", tuple(_fields(schemas[name])), tuple(sorted(parts)))


def first_board(session: Session) -> Board:
    """The first two rows of the first workload, for the examples."""
    filters = BoardFilters.model_validate({"workload": WORKLOADS[0], "limit": 2})
    (board,) = leaderboard.leaderboard(session, filters).boards
    return board


def _sample(board: Board) -> str | None:
    if not board.rows:
        return None
    values = {name: getattr(board.rows[0], name) for name in SAMPLE}
    row = {n: round(v, 3) if isinstance(v, float) else v for n, v in values.items()}
    shown = json.dumps({"rows": [row]}, indent=2, ensure_ascii=False)
    return shown.replace("\n    }", ",\n      ...\n    }", 1)


def _answer(responses: dict[str, Any]) -> str | None:
    for status in ("200", "201"):
        content = responses.get(status, {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        reference = schema.get("$ref") or schema.get("items", {}).get("$ref")
        if reference:
            return _name(reference)
    return None


def _parameter(spec: dict[str, Any]) -> Parameter:
    schema = spec["schema"]
    values = _words(schema).removesuffix(" or null")
    return Parameter(
        spec["name"], values, spec.get("description", ""), _example(schema["examples"][0])
    )


def _fields(schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, value in schema.get("properties", {}).items():
        yield name, _words(value), value.get("description", "")


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _words(schema: dict[str, Any]) -> str:
    """``cpu | cuda | metal``, ``list of BoardRow``, ``integer, 1 to 200; default 50``."""
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
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        yield f"above {schema['exclusiveMinimum']}"
    if low is not None and high is not None:
        yield f"{low:,} to {high:,}"
    elif high is not None:
        yield f"at most {high:,}"
    if "maxLength" in schema:
        yield f"at most {schema['maxLength']:,} characters"


def _example(value: Any) -> str:
    if isinstance(value, list):
        return _example(value[0])
    return str(value).lower() if isinstance(value, bool) else str(value)
