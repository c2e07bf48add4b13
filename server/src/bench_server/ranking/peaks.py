"""Vendors' peak rates: one data file, every figure with its source."""

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent / "data" / "peaks.json"


@lru_cache(maxsize=4096)
def peak_flops(hardware: str, precision: str) -> float | None:
    """Dense peak in FLOP/s of a hardware name in a precision; None where no vendor's is known.

    Args:
        hardware: as :func:`bench_protocol.hardware.hardware_name` gives it. Part of a device, a
            virtual machine or a container has the bound of the whole.
    """
    found = max(
        (name for name in _table() if hardware == name or hardware.startswith(f"{name} (")),
        key=len,
        default=None,
    )
    if found is None:
        return None
    tera = _table()[found]["teraflops"].get(precision)
    return None if tera is None else tera * 1e12


@cache
def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = json.loads(FILE.read_text())["hardware"]
    return table
