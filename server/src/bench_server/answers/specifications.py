"""Specifications of a hardware: as its results report them, else as its maker states them."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.hardware import hardware_name, slug
from bench_protocol.payload.machine import Machine

FILE = Path(__file__).with_name("data") / "specifications.toml"
# Names of boards that makers do not use: Apple's number of cores, the mark of copied figures.
BESIDE_THE_NAME = re.compile(r"( \((\d+-core [CG]PU|published|fanless)\))+$")
Property = Literal["memory_bytes", "cores", "power_limit_watts", "year"]
UNITS: dict[Property, str] = {
    "memory_bytes": "bytes",
    "cores": "cores",
    "power_limit_watts": "watts",
    "year": "year",
}
REPORTED = "reported by its results"


@dataclass(frozen=True)
class Specification:
    """A property of a hardware with its source."""

    property: Property
    values: tuple[float, ...]
    unit: str
    source: str
    url: str | None
    reported: bool


def specifications(
    name: str, device: str, machines: Iterable[Machine]
) -> tuple[Specification, ...]:
    """``name``: as on the boards; ``machines``: as they describe themselves."""
    parts = [part for machine in machines if (part := _reported(machine, name, device))]
    stated = _stated(name)
    found = (_of_results(property, parts) or stated.get(property) for property in UNITS)
    return tuple(one for one in found if one is not None)


def launch_price(name: str) -> tuple[float, str, date, str] | None:
    """Price, currency, day, and the part that the price is of, where they are widely documented."""
    entry = _table()["hardware"].get(BESIDE_THE_NAME.sub("", name), {}).get("price")
    if entry is None:
        return None
    amount, _, currency, day, part = entry
    return float(amount), currency, day, part


def stated_memory(name: str) -> float | None:
    """Bytes of memory of a hardware, as its maker states them."""
    found = _stated(name).get("memory_bytes")
    return found.values[0] if found else None


def _of_results(
    property: Property, parts: Sequence[dict[Property, float | None]]
) -> Specification | None:
    values = sorted({value for part in parts if (value := part.get(property)) is not None})
    if not values:
        return None
    return Specification(property, tuple(values), UNITS[property], REPORTED, None, True)


def _reported(machine: Machine, name: str, device: str) -> dict[Property, float | None]:
    """Memory of a processor, and memory that it shares with its GPU, is the machine's."""
    if device == "cpu":
        cores = machine.cpu.physical_cores or machine.cpu.logical_cores
        return {"memory_bytes": machine.memory_bytes, "cores": cores}
    for gpu in machine.gpus:
        own = hardware_name(machine, Device(kind=gpu.kind, index=gpu.index))
        if slug(own) == slug(name):
            memory = machine.memory_bytes if gpu.unified_memory else gpu.memory_bytes
            return {
                "memory_bytes": memory,
                "cores": gpu.cores,
                "power_limit_watts": gpu.power_limit_watts,
            }
    return {}


def _stated(name: str) -> dict[Property, Specification]:
    table = _table()
    entry = dict(table["hardware"].get(BESIDE_THE_NAME.sub("", name), {}))
    if "memory_gib" in entry:
        gibibytes, source = entry["memory_gib"]
        entry["memory_bytes"] = [gibibytes * 2**30, source]
    found: dict[Property, Specification] = {}
    for property, unit in UNITS.items():
        if property in entry:
            value, key = entry[property]
            source = table["sources"][key]
            found[property] = Specification(
                property, (float(value),), unit, source["title"], source.get("url"), False
            )
    return found


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text("utf-8"))
