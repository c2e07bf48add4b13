"""Words for values that pydantic refuses, and the parameter that an unknown one was meant to be."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request

from ..answers.parameters import NotListed
from ..answers.query_names import nearest

SHOULD = re.compile(r"^(?:Value error, |Input should |String should |List should |Value should )")


def words(error: Mapping[str, Any]) -> str:
    """What is wrong with one value: ``must be greater than or equal to 1``."""
    if error["type"] == "extra_forbidden":
        return "there is no such parameter"
    if error["type"] == "missing":
        return "is required"
    message = str(error["msg"])
    prefix = SHOULD.match(message)
    if prefix is None or prefix[0].startswith("Value error"):
        return message.removeprefix("Value error, ")
    return f"must {message[prefix.end() :].partition(', unable to parse')[0]}"


def listed(error: Mapping[str, Any]) -> list[str]:
    """The names that a refused word of a fixed list is like."""
    reason = error.get("ctx", {}).get("error")
    return nearest(reason.wanted, reason.names) if isinstance(reason, NotListed) else []


def meant(request: Request, errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """Parameters of the same address whose names are like the first error's unknown one."""
    if errors[0]["type"] != "extra_forbidden":
        return []
    path = getattr(request.scope.get("route"), "path", "")
    operations = request.app.openapi()["paths"].get(path, {})
    parameters = operations.get(request.method.lower(), {}).get("parameters", [])
    return nearest(str(errors[0]["loc"][-1]), [one["name"] for one in parameters])
