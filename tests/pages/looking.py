"""Shared by page tests and screenshots: a running server full of invented results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.fakes import fleet as fakes
from tests.fakes.live import running_server

THREE = "nvidia-h200,apple-m2-max-30-core-gpu,intel-core-i7-8700"


@dataclass(frozen=True)
class Fleet:
    """A server with 47 hardware; ``machine`` has a history, ``result`` has every optional field."""

    address: str
    machine: str
    result: str
    failed: str


@contextmanager
def running_fleet(folder: Path, workloads: Sequence[str] = fakes.WORKLOADS) -> Iterator[Fleet]:
    """A server full of invented results, in a folder."""
    url = fakes.make(folder, workloads)
    with running_server(url, folder) as address, httpx.Client(base_url=address) as http:

        def newest(**wanted: str) -> Any:
            answer = http.get("/api/v1/results", params={**wanted, "limit": "1"})
            return answer.json()["results"][0]

        yield Fleet(
            address,
            machine=newest(hardware="apple-m2-max-30-core-gpu")["machine_id"],
            result=newest(hardware="nvidia-h200", workload="mnist-cnn", ranked="true")["id"],
            failed=newest(status="failed")["id"],
        )
