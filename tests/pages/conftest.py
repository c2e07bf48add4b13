"""A server with results, and a browser."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from tests import set_up
from tests.browser import NoBrowser, open_browser
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.fleet import MARKUP
from tests.fakes.live import running_server
from tests.fakes.projected import settled
from tests.pages.looking import Fleet, running_fleet

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.machine import Machine
from bench_server.db import migrate
from bench_server.db.store import Store

# The operator chose it: of one owner it is no baseline.
XEON = "intel-xeon-platinum-8481c-12-cores-virtual-machine"


@dataclass(frozen=True)
class Site:
    address: str
    measured: str
    failed: str
    marked_up: str


@pytest.fixture
def empty_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with _server(tmp_path_factory.mktemp("empty")) as address:
        yield address


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with _server(tmp_path_factory.mktemp("site")) as address:
        with httpx.Client(base_url=address, timeout=30) as http:
            site = _fill(poster(http), address)
        settled(address)
        yield site


@pytest.fixture(scope="session")
def fleet(fleet_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    copied = shutil.copytree(fleet_folder, tmp_path_factory.mktemp("fleet"), dirs_exist_ok=True)
    with running_fleet(copied) as made:
        yield made


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        with open_browser() as opened:
            yield opened
    except NoBrowser as problem:
        pytest.skip(f"{problem}: {set_up.browser_command()}")


@pytest.fixture(scope="session")
def context_with(browser: Browser) -> Callable[..., BrowserContext]:
    """One context for all tests with the same options: opening one takes a second of a core."""
    return cache(browser.new_context)


@pytest.fixture
def page(
    request: pytest.FixtureRequest, context_with: Callable[..., BrowserContext]
) -> Iterator[Page]:
    opened = context_with(**getattr(request, "param", {})).new_page()
    yield opened
    opened.close()


WITHOUT_SCRIPT = pytest.mark.parametrize("page", [{"java_script_enabled": False}], indirect=True)
WITH_AND_WITHOUT_SCRIPT = pytest.mark.parametrize(
    "page", [{"java_script_enabled": True}, {"java_script_enabled": False}], indirect=True
)
_stores: dict[str, Store] = {}


def poster(http: httpx.Client) -> Poster:
    return Poster(http, _stores[str(http.base_url).rstrip("/")])


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    url = f"sqlite:///{folder / 'server.db'}"
    store = Store(url)
    migrate.migrate(store.engine)
    try:
        with running_server(url, folder, BENCH_SERVER_BASELINE=XEON) as address:
            _stores[address] = store
            yield address
    finally:
        store.close()


def fill_with_one_machine(address: str) -> None:
    """Post four set-ups of one machine, three runs each; pages show them when it returns."""
    with httpx.Client(base_url=address, timeout=30) as http:
        post = poster(http)
        post.enroll()
        set_ups = itertools.product(("tensorflow", "mlx"), ("tuned", "naive"))
        for number, (framework, recipe) in enumerate(set_ups, 1):
            cell = results.make_cell(framework=framework, recipe=recipe)
            for run in (1, 2, 3):
                step_ns = 1_000_000 * number + 9_000 * run
                post.made(cell=cell, step_ns=step_ns, run_id=f"{3 * number + run:032x}")
    settled(address)


def _fill(post: Poster, address: str) -> Site:
    post.enroll()
    m2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
    h200 = results.make_machine("AMD EPYC 9654 96-Core Processor", ("cuda", "NVIDIA H200", None))
    xeon = results.make_machine(
        "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", seed=4, virtual_machine="kvm"
    )

    def run(machine: Machine, device: str, step_ns: int, recipe: str = "naive") -> str:
        identity = ""
        for workload in ("mnist-cnn", "fashion-mlp"):
            cell = results.make_cell(workload, device=Device(kind=device), recipe=recipe)  # type: ignore[arg-type]
            for number in (1, 2, 3):
                identity = post.made(
                    cell=cell,
                    machine=machine,
                    step_ns=step_ns + 7_000 * number,
                    run_id=f"{step_ns + number:032x}",
                )
        return identity

    run(h200, "cuda", 90_000, "tuned")
    measured = run(m2, "metal", 240_000)
    run(m2, "metal", 200_000, "tuned")
    run(m2, "cpu", 2_300_000)
    run(xeon, "cpu", 3_300_000)
    failed = post(results.make_failure("out_of_memory", "warm_up"))
    odd = results.make_machine(MARKUP, seed=5)
    return Site(address, measured, failed, post.made(machine=odd, step_ns=9_000_000))
