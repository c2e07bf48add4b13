"""Listens and serves: one process, one plain line that says where."""

import asyncio
import socket

import uvicorn
from fastapi import FastAPI


class AnnouncingServer(uvicorn.Server):
    """Says on standard output where it listens, once it does."""

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
        trusted_proxies: addresses and networks whose X-Forwarded-For is believed, with commas.

    Raises:
        OSError: the address cannot be listened on.
    """
    bound = bind(host, port)
    shown = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=trusted_proxies,
    )
    server = AnnouncingServer(config, f"http://{shown}:{bound.getsockname()[1]}")
    # uvicorn chooses uvloop where it is installed.
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets=[bound]))


def bind(host: str, port: int) -> socket.socket:
    """A TCP socket bound to the address; port 0 takes a free one.

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
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
