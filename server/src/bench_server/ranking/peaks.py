"""Vendors' peak rates, each with its source, and the share of them that a training uses."""

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from bench_protocol.workloads import Workload

FILE = Path(__file__).resolve().parent / "data" / "peaks.json"


@lru_cache(maxsize=4096)
def peak_flops(hardware: str, precision: str) -> float | None:
    """Dense peak in FLOP/s of a hardware name in a precision; None if no vendor's figure is known.

    Args:
        hardware: as :func:`bench_protocol.hardware.hardware_name` gives it. Part of a device, a
            virtual machine or a container has the peak of the whole device.
    """
    matches = max(
        (name for name in _table() if hardware == name or hardware.startswith(f"{name} (")),
        key=len,
        default=None,
    )
    if matches is None:
        return None
    tera = _table()[matches]["teraflops"].get(precision)
    return None if tera is None else tera * 1e12


@cache
def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = json.loads(FILE.read_text())["hardware"]
    return table


def mfu(
    workload: Workload, hardware: str, precision: str, ns_per_sample: float | None
) -> float | None:
    """Model FLOP utilisation: FLOPs of the model's own products a second over the vendor's peak
    (Chowdhery et al., PaLM, 2022, appendix B); None if no peak is known.

    Values above 1 are possible: Winograd and FFT convolutions need fewer products than counted.
    """
    peak = peak_flops(hardware, precision)
    if peak is None or ns_per_sample is None:
        return None
    return workload.training_flops_per_sample * 1e9 / ns_per_sample / peak
