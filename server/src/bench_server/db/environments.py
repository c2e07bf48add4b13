"""Attributes: what results may be filtered by besides their cell. An allow-list, so that every
filter is typed, documented and served from the ``environment`` table.
"""

import hashlib
import re
from typing import Any

import orjson

from bench_protocol.payload.machine import Gpu
from bench_protocol.payload.result import Result

from .tables import EnvironmentRow

VERSIONS = ("os_version", "python", "agent", "framework_version", "driver", "cuda")
WORDS = ("os",)
NUMBERS = ("memory_bytes", "gpu_memory_bytes", "cores")

# Suffixes of a framework's wheel names.
BUILDS = ("cpu", "macos", "gpu")

# Number of parts of a version that are compared; each is written with nine digits.
_PARTS = 6
_STAGES = {"dev": 0, "alpha": 1, "a": 1, "beta": 2, "b": 2, "pre": 3, "rc": 3}
_STAGE = re.compile(r"[-._]?(dev|alpha|beta|pre|rc|a|b)[-._]?(\d{0,9})", re.ASCII)
_RELEASED = 9


def version_key(text: str | None) -> str | None:
    """A version as digits that sort as versions do in any database and collation.

    ``2.9 < 2.10rc1 < 2.10``. Words around the version (``Ubuntu 22.04.3 LTS``) and what a vendor
    adds behind ``+`` do not count. None where there is no number.
    """
    numbers_match = re.search(r"\d+(?:\.\d+)*", text or "", re.ASCII)
    if text is None or numbers_match is None:
        return None
    numbers = [min(int(part[:12]), 10**9 - 1) for part in numbers_match.group().split(".")[:_PARTS]]
    stage = _STAGE.match(text[numbers_match.end() :].lower())
    kind, number = (_STAGES[stage[1]], int(stage[2] or 0)) if stage else (_RELEASED, 0)
    padded = numbers + [0] * (_PARTS - len(numbers))
    return "".join(f"{part:09d}" for part in padded) + f"{kind}{number:09d}"


def framework_version(result: Result) -> str | None:
    """Version of the framework that computed, under whichever name its wheel has."""
    packages, name = result.environment.packages, result.cell.framework
    return next(
        (packages[n] for n in (name, *(f"{name}-{b}" for b in BUILDS)) if n in packages), None
    )


def environment_id(result: Result) -> str:
    """Names the attributes of a result: the same for every result that agrees in them."""
    text = orjson.dumps(_fields(result), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:32]


def environment_row(result: Result) -> EnvironmentRow:
    """The attributes of a result."""
    fields = _fields(result)
    keys: dict[str, Any] = {f"{name}_key": version_key(fields[name]) for name in VERSIONS}
    return EnvironmentRow(id=environment_id(result), **fields, **keys)


def _fields(result: Result) -> dict[str, Any]:
    machine, environment = result.machine, result.environment
    gpu = _gpu(result)
    return {
        "os": machine.os.name,
        "os_version": machine.os.version,
        "python": environment.python,
        "agent": result.agent.version,
        "framework_version": framework_version(result),
        "driver": gpu.driver if gpu else None,
        "cuda": environment.libraries.get("cuda"),
        "memory_bytes": machine.memory_bytes,
        "gpu_memory_bytes": gpu.memory_bytes if gpu else None,
        "cores": machine.cpu.physical_cores or machine.cpu.logical_cores,
    }


def _gpu(result: Result) -> Gpu | None:
    device = result.cell.device
    gpus = (g for g in result.machine.gpus if (g.kind, g.index) == (device.kind, device.index))
    return next(gpus, None)
