"""The software of a result, as far as an update changes it: a row of the ``environment`` table."""

import hashlib
from typing import Any

import orjson

from bench_protocol.payload.result import Result

from .tables import EnvironmentRow

# Suffixes of a framework's wheel names.
BUILDS = ("cpu", "macos", "gpu")


def framework_version(result: Result) -> str | None:
    """Version of the framework that computed, under whichever name its wheel has."""
    packages, name = result.environment.packages, result.cell.framework
    return next(
        (packages[n] for n in (name, *(f"{name}-{b}" for b in BUILDS)) if n in packages), None
    )


def environment_id(result: Result) -> str:
    text = orjson.dumps(_fields(result), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:32]


def environment_row(result: Result) -> EnvironmentRow:
    return EnvironmentRow(id=environment_id(result), **_fields(result))


def _fields(result: Result) -> dict[str, Any]:
    machine, environment, device = result.machine, result.environment, result.cell.device
    gpus = (g for g in machine.gpus if (g.kind, g.index) == (device.kind, device.index))
    gpu = next(gpus, None)
    return {
        "os": machine.os.name,
        "os_version": machine.os.version,
        "python": environment.python,
        "agent": result.agent.version,
        "framework_version": framework_version(result),
        "driver": gpu.driver if gpu else None,
        "cuda": environment.libraries.get("cuda"),
    }
