"""What tests and pictures of the pages look at, and the browser they look with."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, sync_playwright
from tests.fakes import fleet as fakes
from tests.fakes.live import running_server

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
THREE = "nvidia-h200,apple-m2-max-30-core-gpu,intel-core-i7-8700"


@dataclass(frozen=True)
class Fleet:
    """A server with 47 hardware; ``machine`` has a history, ``result`` all that a result can."""

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
            result=newest(hardware="nvidia-h200", workload="mnist-cnn", rankable="true")["id"],
            failed=newest(status="failed")["id"],
        )


@contextmanager
def open_browser() -> Iterator[Browser]:
    """The system's Chromium, else the one that Playwright installed."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    arguments = [*QUIET, "--no-sandbox"] if root else [*QUIET]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=arguments)
        yield opened
        opened.close()
