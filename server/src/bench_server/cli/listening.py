"""Bind the server's address, before the imports that a start takes seconds for."""

import socket
import sys

# Each of several server processes binds a socket of its own.
OWN_SOCKETS = sys.platform == "linux"


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
