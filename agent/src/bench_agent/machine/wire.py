"""Build wire models from untrusted facts: a value that the model refuses is left out, and a name
has the reason in its place."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from bench_protocol.base.units import Wire

Model = TypeVar("Model", bound=Wire)


def tolerant(model: type[Model], facts: Mapping[str, Any], **needed: Any) -> Model:
    """Build a model from the facts that it accepts. ``needed``: required fields with defaults for
    facts that are missing or refused."""
    present = {name: value for name, value in facts.items() if value is not None}
    try:
        return model(**{**needed, **present})
    except ValidationError as refused:
        errors = {str(error["loc"][0]): error for error in refused.errors(include_url=False)}
    accepted = {name: value for name, value in present.items() if name not in errors}
    unnamed = {
        name: f"{needed.get(name, f'unknown {name}')} (its name {error['ctx']['problem']})"
        for name, error in errors.items()
        if error["type"] == "name"
    }
    return model(**{**needed, **accepted, **unnamed})
