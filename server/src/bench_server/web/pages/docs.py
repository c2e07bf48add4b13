"""``/docs``: documentation of the API, from its OpenAPI document."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """One operation of the API. ``parameters``: name, location, values and limits, meaning,
    example."""

    method: str
    path: str
    summary: str
    parameters: tuple[tuple[str, str, str, str, str], ...]
    statuses: tuple[str, ...]


@dataclass(frozen=True)
class DocsPage:
    """``/docs``: which queries does the API have?"""

    title: str
    json_href: str
    groups: tuple[tuple[str, tuple[Operation, ...]], ...]


def docs_page(openapi: dict[str, Any]) -> DocsPage:
    groups: dict[str, list[Operation]] = {}
    for path, methods in openapi["paths"].items():
        for method, spec in methods.items():
            parameters = tuple(
                (
                    p["name"],
                    p["in"],
                    _values(p["schema"]),
                    p.get("description", ""),
                    _example(p["schema"]["examples"][0]),
                )
                for p in spec.get("parameters", ())
            )
            operation = Operation(
                method.upper(), path, spec["summary"], parameters, tuple(sorted(spec["responses"]))
            )
            groups.setdefault(spec["tags"][0], []).append(operation)
    return DocsPage(
        "API", "/openapi.json", tuple((tag, tuple(routes)) for tag, routes in groups.items())
    )


def _values(schema: dict[str, Any]) -> str:
    """A schema in a few words: ``cpu | cuda | metal``, ``integer, 1 to 200; default 50``."""
    if "anyOf" in schema:
        options = [_values(option) for option in schema["anyOf"] if option.get("type") != "null"]
        return " | ".join(dict.fromkeys(options))
    if "enum" in schema:
        words = " | ".join(map(str, schema["enum"]))
    else:
        kind = str(schema.get("const") or schema.get("type") or "any")
        words = ", ".join([kind, *_limits(schema)])
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
    if "items" in schema:
        yield f"at most {schema['maxItems']} of {_values(schema['items'])}"
    if "maxLength" in schema:
        yield f"at most {schema['maxLength']:,} characters"
    if "pattern" in schema:
        yield f"matching {schema['pattern']}"


def _example(value: Any) -> str:
    """An example value as in an address; the first of a list."""
    if isinstance(value, list):
        return _example(value[0])
    return str(value).lower() if isinstance(value, bool) else str(value)
