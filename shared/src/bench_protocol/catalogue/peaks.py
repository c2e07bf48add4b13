"""Vendors' peak rates, each with its source, and the share of them that a training uses."""

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from .workloads import Workload

FILE = Path(__file__).resolve().parent / "peaks.json"
# A hardware name of Apple's GPUs: chip and cores (bench_protocol.payload.hardware).
APPLE_GPU = re.compile(r"(Apple M\d+(?: \w+)?) \((\d+)-core GPU\)")


@lru_cache(maxsize=4096)
def peak_flops(hardware: str, precision: str) -> float | None:
    """Dense peak in FLOP/s of a hardware name in a precision; None if no figure is known.

    NVIDIA states its peaks. Apple states none: cores times clock times 256.

    Args:
        hardware: as :func:`bench_protocol.payload.hardware.hardware_name` gives it. Part of a
            device, a virtual machine or a container has the peak of the whole device.
    """
    if apple := APPLE_GPU.match(hardware):
        gpus = table()["apple_gpus"]
        clock = gpus["clocks_mhz"].get(apple[1])
        known = clock and precision == "float32"
        return gpus["flops_a_cycle"] * int(apple[2]) * clock["mhz"] * 1e6 if known else None
    tera = _stated(hardware).get("teraflops", {}).get(precision)
    return None if tera is None else tera * 1e12


def boost_mhz(hardware: str) -> float | None:
    """The clock at which the peak of a hardware name holds, where its cards run faster; else
    None."""
    mhz: float | None = _stated(hardware).get("boost_mhz")
    return mhz


def _stated(hardware: str) -> Mapping[str, Any]:
    """What the vendor states of a hardware name; empty if nothing is known."""
    stated: Mapping[str, Mapping[str, Any]] = table()["hardware"]
    matches = (name for name in stated if hardware == name or hardware.startswith(f"{name} ("))
    return stated.get(max(matches, key=len, default=""), {})


@cache
def table() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(FILE.read_text())
    return read


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
