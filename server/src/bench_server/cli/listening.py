"""Bind the server's address, and answer 503 on it while the server starts."""

import contextlib
import socket
import sys
import time
from threading import Event, Thread

# Each of several server processes binds a socket of its own.
OWN_SOCKETS = sys.platform == "linux"
RETRY_SECONDS = 1
BACKLOG = 2048
# Time limit of a client's request and departure: the application waits for it at the handover.
CLIENT_SECONDS = 0.2
BODY = (
    b'{"type":"urn:trainmark:problem:starting","title":"Service Unavailable","status":503,'
    b'"detail":"the server is starting","code":"starting","field":"","hint":"try again in 1 s"}'
)
ANSWER = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n"
    b"content-length: %d\r\nretry-after: %d\r\nconnection: close\r\n\r\n"
) % (len(BODY), RETRY_SECONDS) + BODY


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


class Starting:
    """Listens on a bound socket and answers in a thread until it is stopped. Connections that come
    later stay in the queue until the application accepts them."""

    def __init__(self, bound: socket.socket) -> None:
        self.bound = bound
        bound.listen(BACKLOG)
        bound.settimeout(0.02)
        self._stopped = Event()
        self._thread = Thread(target=_answer, args=(bound, self._stopped), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answer no more. The socket stays open."""
        self._stopped.set()
        self._thread.join()

    def close(self) -> None:
        """Answer those who wait, then close the socket: others listen on its address now."""
        self.stop()
        self.bound.settimeout(0)
        with contextlib.suppress(OSError):
            while True:
                _refuse(self.bound)
        self.bound.close()


def _answer(bound: socket.socket, stopped: Event) -> None:
    while not stopped.is_set():
        with contextlib.suppress(OSError):  # nobody came, or the client left
            _refuse(bound)


def _refuse(bound: socket.socket) -> None:
    """Answer the next client.

    Raises:
        OSError: there is none, or it left.
    """
    client, _ = bound.accept()
    with client:
        client.settimeout(CLIENT_SECONDS)
        client.recv(65_536)
        client.sendall(ANSWER)
        # Unread bytes would make the system discard the answer.
        client.shutdown(socket.SHUT_WR)
        ends = time.monotonic() + CLIENT_SECONDS
        while client.recv(65_536) and time.monotonic() < ends:
            pass
