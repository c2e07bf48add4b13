"""``/docs``: the API as its OpenAPI document tells it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """One operation of the API. ``parameters``: name, place, type, description, example."""

    method: str
    path: str
    summary: str
    parameters: tuple[tuple[str, str, str, str, str], ...]
    statuses: tuple[str, ...]


@dataclass(frozen=True)
class DocsPage:
    """``/docs``: what can the API be asked?"""

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
                    _type(p["schema"]),
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
        "API", "/openapi.json", tuple((tag, tuple(found)) for tag, found in groups.items())
    )


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words: ``cpu | cuda | metal``, ``integer``."""
    if "anyOf" in schema:
        words = [_type(option) for option in schema["anyOf"] if option.get("type") != "null"]
        return " | ".join(dict.fromkeys(words))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    return str(schema.get("const") or schema.get("type") or "any")


def _example(value: Any) -> str:
    """A value as it stands in an address; of a list the first."""
    return _example(value[0]) if isinstance(value, list) else str(value).lower()
