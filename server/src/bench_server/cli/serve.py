"""Serve with uvicorn from one process or several; one line prints the address."""

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from ..garbage import tune_collector

START_SECONDS = 60


class AnnouncingServer(uvicorn.Server):
    """A uvicorn server that prints its address once it listens."""

    def __init__(self, config: uvicorn.Config, address: str) -> None:
        super().__init__(config)
        self._address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(f"listening on {self._address}", flush=True)


def serve(app: FastAPI, host: str, port: int, trusted_proxies: str = "") -> None:
    """Serve until a signal ends it.

    Args:
        trusted_proxies: addresses and networks whose X-Forwarded-For is trusted, with commas.

    Raises:
        OSError: the address cannot be listened on.
    """
    bound = bind(host, port)
    config = uvicorn.Config(app, **_options(trusted_proxies))
    server = AnnouncingServer(config, _address(host, bound))
    tune_collector()
    # uvicorn chooses uvloop where it is installed.
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets=[bound]))


def serve_workers(host: str, port: int, workers: int, trusted_proxies: str = "") -> None:
    """Serve from several processes; each creates its application from the environment.

    Raises:
        OSError: the address cannot be listened on.
    """
    bound = bind(host, port)
    config = uvicorn.Config(
        "bench_server.app:from_environment", factory=True, **_options(trusted_proxies)
    )
    config.workers = workers
    address = _address(host, bound)
    tune_collector()
    sockets: list[Any] = [bound]
    if sys.platform == "linux":
        # With one shared socket the first worker to wake would take nearly all simultaneous
        # connections.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sockets = [OwnInEachWorker(host, bound.getsockname()[1])]
    AnnouncingWorkers(config, sockets, address).run()


class OwnInEachWorker:
    """A socket's address, pickled to a worker, which binds its own socket; the kernel distributes
    connections over all sockets of one address."""

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
            print(f"listening on {self._address}", flush=True)


def _options(trusted_proxies: str) -> dict[str, Any]:
    return {
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": bool(trusted_proxies),
        "forwarded_allow_ips": trusted_proxies,
    }


def _address(host: str, bound: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{bound.getsockname()[1]}"


def bind(host: str, port: int, shared: bool = False) -> socket.socket:
    """A TCP socket bound to the address; port 0 takes a free one. ``shared``: other sockets may be
    bound to it too; without it, binding a used address is an error.

    The protocol is named and TCP_NODELAY set: asyncio sets it only on sockets whose protocol it
    can see, and without it every keep-alive answer waits 40 ms for the client's acknowledgement.
    """
    family, kind, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
