"""Families of hardware: what people search for together. One table of rules, by name and device.
Families may overlap: an Apple M processor is of the families ``apple-m`` and ``cpu``."""

import re
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_


class Family(NamedTuple):
    """``pattern`` matches the beginning of a name, and has only what Python, SQLite (through
    Python) and PostgreSQL have alike."""

    label: str
    pattern: str = ""
    devices: tuple[str, ...] = ()


FAMILIES: dict[str, Family] = {
    "apple-m": Family("Apple M", "^Apple M[0-9]"),
    "geforce": Family("GeForce", "^NVIDIA GeForce "),
    "data-centre": Family(
        "Data-centre GPUs", "^(NVIDIA (Tesla |(A|B|GB|GH|H|L|P|V)[0-9]|T4($|[^0-9]))|AMD Instinct )"
    ),
    "workstation": Family(
        "Workstation GPUs", "^NVIDIA (RTX |Quadro |TITAN |T[0-9]{3,4}($|[^0-9]))"
    ),
    "radeon": Family("Radeon", "^AMD Radeon "),
    "gpu": Family("GPUs", devices=("cuda", "metal")),
    "cpu": Family("CPUs", devices=("cpu",)),
}


def contains(name: str, hardware: str, device: str) -> bool:
    family = FAMILIES[name]
    of_device = not family.devices or device in family.devices
    return of_device and re.match(family.pattern, hardware) is not None


def condition(table: Any, name: str) -> ColumnElement[bool]:
    """The rows of a family, in a table with columns ``hardware`` and ``device``."""
    family = FAMILIES[name]
    conditions = [table.c.device.in_(family.devices)] if family.devices else []
    if family.pattern:
        conditions.append(table.c.hardware.regexp_match(family.pattern))
    return and_(*conditions)
