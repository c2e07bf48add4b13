"""CUDA device order: which GPU is a framework's index 0.

Frameworks number GPUs as the CUDA driver does: only the devices in CUDA_VISIBLE_DEVICES, in its
order, and the fastest first unless CUDA_DEVICE_ORDER=PCI_BUS_ID. The management library (NVML)
ignores both and numbers along the bus. So a separate process asks the CUDA driver. If it does not
answer, CUDA_VISIBLE_DEVICES is read as CUDA documents it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_protocol.base import strict_json
from bench_protocol.base.errors import MalformedJson
from bench_protocol.payload.readings import possible

from .text import text_or_none, whole_or_none

TIMEOUT_SECONDS = 60
MOST_DEVICES = 64
SCRIPT = Path(__file__).with_name("_ask_cuda.py")


@dataclass(frozen=True)
class CudaDevice:
    """A device as the CUDA driver reports it. ``uuid`` (32 hexadecimal digits) is never sent."""

    uuid: str
    name: str | None
    memory_bytes: int | None
    multiprocessors: int | None
    maximum_clock_mhz: int | None
    integrated: bool
    compute_capability: str | None


def devices(environ: Mapping[str, str] = os.environ) -> tuple[CudaDevice, ...] | None:
    """Devices in the order of the frameworks' index; None if the driver does not answer."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(SCRIPT)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_SECONDS,
            env=dict(environ),
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return parse_devices(done.stdout.decode("utf-8", "replace")) if not done.returncode else None


def parse_devices(text: str) -> tuple[CudaDevice, ...] | None:
    """Parse the script's output; None if it is malformed."""
    try:
        listed = strict_json.loads(text.encode())
    except MalformedJson:
        return None
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        return None
    return tuple(map(_device, listed[:MOST_DEVICES]))


def visible(setting: str | None, uuids: Sequence[str]) -> list[int]:
    """Bus positions of the devices in CUDA_VISIBLE_DEVICES, in its order.

    Args:
        setting: None if it is not set. Numbers or prefixes of UUIDs (``GPU-8f3a``). As in CUDA, the
            first entry that names no device or a repeated one ends the list.
        uuids: UUIDs of the GPUs along the bus, in NVML's form (``GPU-...``).
    """
    if setting is None:
        return list(range(len(uuids)))
    positions: list[int] = []
    for entry in setting.split(","):
        position = _position(entry.strip(), uuids)
        if position is None or position in positions:
            break
        positions.append(position)
    return positions


def _position(entry: str, uuids: Sequence[str]) -> int | None:
    if re.fullmatch(r"[0-9]{1,4}", entry):
        return int(entry) if int(entry) < len(uuids) else None
    if not entry.startswith("GPU-"):
        return None
    matching = [place for place, uuid in enumerate(uuids) if uuid.startswith(entry)]
    return matching[0] if len(matching) == 1 else None


def _device(item: Mapping[str, Any]) -> CudaDevice:
    uuid, capability = item.get("uuid"), item.get("capability")
    numbers = capability if isinstance(capability, list) else []
    has_both = len(numbers) == 2 and all(isinstance(part, int) for part in numbers)
    clock_mhz = (whole_or_none(item.get("clock_khz")) or 0) // 1000
    return CudaDevice(
        uuid=uuid.lower() if isinstance(uuid, str) else "",
        name=text_or_none(item.get("name")),
        memory_bytes=whole_or_none(item.get("memory_bytes")),
        multiprocessors=whole_or_none(item.get("multiprocessors")),
        maximum_clock_mhz=clock_mhz if possible("mhz", clock_mhz) else None,
        integrated=item.get("integrated") == 1,
        compute_capability=".".join(map(str, numbers))[:64] if has_both else None,
    )
