"""Serve with uvicorn from one process or several; one line prints the address."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from ..memory import switch_threads_often, tune_collector
from ..settings import Settings
from ..web.connections import Connections, Limits
from .listening import OWN_SOCKETS, bind

START_SECONDS = 60
# Each connection is a file; the database, the log and libraries need some more.
MOST_FILES = 65_536
# macOS may allow fewer than it says, but always these (OPEN_MAX of its limits.h).
MACOS_FILES = 10_240
OTHER_FILES = 128
LEAST_CONNECTIONS = 64
# What is not answered by then was not acknowledged: its sender keeps it.
END_SECONDS = 10


class AnnouncingServer(uvicorn.Server):
    """A uvicorn server that prints its address once it listens."""

    def __init__(self, config: uvicorn.Config, address: str) -> None:
        super().__init__(config)
        self._address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            _announce(self._address)


def serve(app: FastAPI, bound: socket.socket, settings: Settings) -> None:
    config = uvicorn.Config(app, **_options(settings))
    server = AnnouncingServer(config, _address(settings.host, bound))
    tune_collector()
    switch_threads_often()
    # uvicorn chooses uvloop where it is installed.
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets=[bound]))


def serve_workers(bound: socket.socket, settings: Settings) -> None:
    """Each creates its application from the environment; the bound socket reserves the address."""
    address = _address(settings.host, bound)
    config = uvicorn.Config("bench_server.app:from_environment", factory=True, **_options(settings))
    config.workers = settings.workers
    tune_collector()
    # With one shared socket the first worker to wake would take nearly all new connections.
    own = OwnInEachWorker(settings.host, bound.getsockname()[1])
    AnnouncingWorkers(config, [own if OWN_SOCKETS else bound], address).run()


class OwnInEachWorker:
    """Pickled to a worker, it binds a socket of its own; the kernel distributes connections."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    def __reduce__(self) -> tuple[Callable[..., socket.socket], tuple[str, int, bool]]:
        return bind, (*self._address, True)


class AnnouncingWorkers(Multiprocess):
    """A uvicorn supervisor that prints the address once all workers listen."""

    def __init__(self, config: uvicorn.Config, sockets: list[Any], address: str) -> None:
        super().__init__(config, sockets)
        self._address = address

    def init_processes(self) -> None:
        super().init_processes()
        if all(
            process.wait_until_ready(START_SECONDS, self.should_exit) for process in self.processes
        ):
            _announce(self._address)


def _announce(address: str) -> None:
    """Say that the server answers: one line, and systemd's notification (sd_notify(3))."""
    print(f"listening on {address}", flush=True)
    if path := os.environ.get("NOTIFY_SOCKET"):
        name = f"\0{path[1:]}" if path.startswith("@") else path
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd,
        ):
            systemd.sendto(b"READY=1", name)


def _options(settings: Settings) -> dict[str, Any]:
    limits = Limits(
        header_seconds=settings.header_seconds,
        body_seconds=settings.body_seconds,
        per_address=settings.address_connections,
        total=max(files() - OTHER_FILES, LEAST_CONNECTIONS),
        proxies=settings.proxies,
    )
    return {
        "http": Connections(limits),
        "ws": "none",
        "log_level": "warning",
        "access_log": False,
        "timeout_graceful_shutdown": END_SECONDS,
        "server_header": False,
        "proxy_headers": bool(settings.trusted_proxies),
        "forwarded_allow_ips": settings.trusted_proxies,
    }


def files() -> int:
    """Files that this process may open at once: as many as the system allows it, which is set."""
    if sys.platform == "win32":
        return MOST_FILES
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        for number in (wanted, min(wanted, MACOS_FILES)):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
                break
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, MOST_FILES)


def _address(host: str, bound: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{bound.getsockname()[1]}"
