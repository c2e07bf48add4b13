"""Shared by page tests and screenshots: a running server full of invented results."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.fakes.live import running_server

THREE = "nvidia-h200,apple-m2-max-30-core-gpu,intel-core-i7-8700"
BOARD = "/?workload=mnist-cnn"
PAGES = (
    "/",
    "/?workload=mnist-cnn&rank_by=energy",
    "/?workload=mnist-cnn&device=metal&recipe=tuned",
    "/?workload=mnist-cnn&group=setup&batch_size=any&q=m4+pro",
    "/workloads/mnist-cnn",
    "/hardware",
    "/machines?q=m2",
    "/results?workload=mnist-cnn",
    "/hardware/apple-m2-max-30-core-gpu",
    "/machines/{machine}",
    "/owners/Ada",
    "/results/{result}",
    "/results/{failed}",
    "/compare",
    f"/compare?ids={THREE}",
    "/frameworks",
    "/cpu-vs-gpu",
    "/batch-size",
    "/trends",
    "/log",
    "/methodology",
    "/verdicts",
    "/trust",
    "/documents/methodology",
    "/documents/faults",
    "/submit",
    "/docs",
    "/docs/LeaderboardAnswer",
)

# Heads of columns of which no row has anything.
EMPTY_COLUMNS = """() => [...document.querySelectorAll('table')].flatMap(table =>
    [...table.tHead.rows[0].cells].filter((head, place) => [...table.tBodies[0].rows].every(row =>
        ['', '–'].includes(row.cells[place].textContent.trim())
        && !row.cells[place].querySelector('input'))))
    .map(head => head.textContent)"""


@dataclass(frozen=True)
class Fleet:
    """A server with 47 hardware; ``machine`` has a history, ``result`` has every optional field."""

    address: str
    machine: str
    result: str
    failed: str

    @property
    def addresses(self) -> list[str]:
        ids = {"machine": self.machine, "result": self.result, "failed": self.failed}
        return [self.address + page.format(**ids) for page in PAGES]


@contextmanager
def running_fleet(folder: Path) -> Iterator[Fleet]:
    """Serve what :func:`tests.fakes.fleet.make` made in a folder."""
    url = f"sqlite:///{folder / 'server.db'}"
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
