"""Clients that send half a request, or read no answer, cannot hold a server."""

import asyncio
import json
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPResponse
from pathlib import Path

import httpx
import pytest
from tests.fakes.live import running_server
from uvicorn import Config
from uvicorn.server import ServerState

from bench_server.cli.serve import files
from bench_server.settings import Settings
from bench_server.web.connections import LEAST_BYTES_A_SECOND, BoundedProtocol, Connections, Limits

HALF_HEADERS = b"GET / HTTP/1.1\r\nHost: x\r\nX-Half: "
HALF_BODY = (
    b"POST /api/v1/results HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n{"
)
LONG_BODY = HALF_BODY.replace(b"1000", b"10000")
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
PER_ADDRESS = 40


@pytest.fixture(scope="module")
def home(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("connections")
    shutil.copy(migrated_file, folder / "server.db")
    return folder


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[tuple[str, int]]:
    limits = {"HEADER_SECONDS": "1", "BODY_SECONDS": "1", "ADDRESS_CONNECTIONS": str(PER_ADDRESS)}
    settings = {f"BENCH_SERVER_{name}": value for name, value in limits.items()}
    with running_server(f"sqlite:///{home / 'server.db'}", home, **settings) as url:
        parts = httpx.URL(url)
        yield parts.host, parts.port or 0


def connected(address: tuple[str, int], number: int = 1) -> socket.socket:
    client = socket.create_connection(address, timeout=30, source_address=(f"127.0.0.{number}", 0))
    client.settimeout(30)
    return client


def is_answered(address: tuple[str, int]) -> bool:
    with connected(address) as normal:
        normal.sendall(WHOLE)
        return normal.recv(65_536).startswith(b"HTTP/1.1 200")


def status_at_the_end(client: socket.socket) -> int:
    """The status of what the server sent until it closed the connection; 0 without any."""
    received = b"".join(iter(lambda: client.recv(65_536), b""))
    return int(received.rpartition(b"HTTP/1.1 ")[2].split(b" ")[0] or 0)


def test_half_a_request_is_closed_with_its_reason(address: tuple[str, int]) -> None:
    """So is a late body, at any rate. An empty line after an answer holds no connection."""
    halves = (b"", b"\r\n", HALF_HEADERS, HALF_BODY)
    with ExitStack() as clients:
        answered, steady, *half = (clients.enter_context(connected(address)) for _ in range(6))
        answered.sendall(WHOLE)
        assert answered.recv(65_536).startswith(b"HTTP/1.1 200")
        answered.sendall(b"\r\n")
        steady.sendall(LONG_BODY)
        for client, sent in zip(half, halves, strict=True):
            client.sendall(sent)
        with suppress(ConnectionError):  # it is closed while this is sent
            for _ in range(8):  # three deadlines
                time.sleep(0.35)
                steady.sendall(b"x" * 1111)
        assert [status_at_the_end(one) for one in (answered, steady, *half)] == [408] * 6


@pytest.mark.only_on("linux")  # others have no 127.0.0.2
def test_many_half_requests_leave_others_their_answers_and_the_log_empty(
    home: Path, address: tuple[str, int]
) -> None:
    half = [connected(address, 2 + number // 100) for number in range(300)]
    for client, sent in zip(half, [HALF_HEADERS, HALF_BODY] * 150, strict=True):
        with suppress(OSError):  # refused
            client.sendall(sent)
    assert is_answered(address)
    statuses = []
    for client in half:
        with client:
            try:
                statuses.append(status_at_the_end(client))
            except ConnectionResetError:  # refused before it had sent all
                statuses.append(503)
    assert statuses.count(408) == 3 * PER_ADDRESS
    assert statuses.count(503) == len(half) - 3 * PER_ADDRESS
    for sent in (HALF_HEADERS, HALF_BODY):  # clients that leave
        with connected(address) as client:
            client.sendall(sent)
    assert is_answered(address)
    assert (home / "server.log").read_text() == ""


GET = b"GET /healthz HTTP/1.1\r\n"
CHUNKED = GET.replace(b"GET", b"POST") + b"Host: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_what_is_not_one_request_is_refused(home: Path, address: tuple[str, int]) -> None:
    """By a problem, and without a line in the log. An upgrade is answered as HTTP/1.1."""
    ends = b"\r\n\r\n"
    hosts = (b"a b", b"[::1", b"[x]", b"x:99999", b"x/y", b"x@y", b"\xc3\xa9", b"x\r\nHost: x")
    upgrade = b"Host: x\r\nConnection: upgrade\r\nUpgrade: websocket"
    for sent, status in (
        *((GET + b"Host: " + host + ends, 400) for host in hosts),
        *((sent, 400) for sent in (GET + b"\r\n", b"G\0T / HTTP/1.1\r\n", CHUNKED + b"zz\r\n")),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
        *((GET + b"Connection: close\r\nHost: " + host + ends, 200) for host in (b"[::1]:8", b"")),
        (GET + upgrade + ends, 200),
        (GET + upgrade + ends + b"\x81\x85", 200),
        (GET + b"Host: x\r\n\r\n\0", 200),  # the request before it is answered
    ):
        with connected(address) as client:
            client.sendall(sent)
            answer = HTTPResponse(client)
            answer.begin()
            document = json.loads(answer.read())
        assert answer.status == status, (sent, document)
        assert status < 400 or document["code"] == "malformed_request", sent
    assert (home / "server.log").read_text() == ""


def test_addresses_of_one_site_share_a_limit() -> None:
    """Addresses of proxies have no limit of their own, and all share one."""
    connections = Connections(Limits(per_address=1))
    site = ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")
    assert [*map(connections.admit, site)] == [True, False, True]
    connections.release("2001:db8::1")
    assert connections.admit("2001:db8::2")
    limits = Limits(per_address=1, total=3, proxies=Settings(trusted_proxies="10.0.0.0/8").proxies)
    connections = Connections(limits)
    addresses = ("10.0.0.7", "10.0.0.7", "192.0.2.1", "192.0.2.1", "::1")
    assert [*map(connections.admit, addresses)] == [True, True, True, False, False]
    connections.release("192.0.2.1")
    assert connections.admit("::1")


class Transport(asyncio.Transport):
    """A transport whose client reads what a test says; ``unread`` is in bytes."""

    unread, closing, aborted = 0, False, False

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.aborted = True


READING_SECONDS = 0.05


async def connection() -> tuple[Transport, BoundedProtocol]:
    transport = Transport()
    config = Config(app=lambda *_: None, log_level="critical")
    protocol = Connections(Limits(body_seconds=READING_SECONDS))(config, ServerState(), {})
    protocol.connection_made(transport)
    return transport, protocol


def test_a_client_is_closed_once_it_reads_nothing() -> None:
    """One that reads all, or slowly and steadily, is not."""

    async def run() -> list[bool]:
        transport, protocol = await connection()
        transport.unread = 1_000_000
        protocol.pause_writing()
        protocol.resume_writing()
        await asyncio.sleep(4 * READING_SECONDS)
        seen = [transport.aborted]
        protocol.pause_writing()
        for _ in range(20):
            transport.unread -= LEAST_BYTES_A_SECOND
            await asyncio.sleep(READING_SECONDS / 4)
        seen.append(transport.aborted)
        await asyncio.sleep(4 * READING_SECONDS)
        protocol.connection_lost(OSError())
        return [*seen, transport.aborted]

    assert asyncio.run(run()) == [False, False, True]


@pytest.mark.parametrize("last", ["answer", "keep-alive"])
def test_the_end_of_an_answer_that_nobody_reads_is_cut(last: str) -> None:
    """It may be too short for the transport to pause."""

    async def run() -> list[bool]:
        transport, protocol = await connection()
        transport.unread = 50_000
        if last == "answer":
            transport.close()  # the connection ends with it
            protocol.on_response_complete()
        else:
            protocol.timeout_keep_alive_handler()
        protocol.resume_writing()  # not all is read
        seen = [transport.closing, transport.aborted]
        await asyncio.sleep(4 * READING_SECONDS)
        return [*seen, transport.aborted]

    assert asyncio.run(run()) == [True, False, True]


@pytest.mark.parametrize(
    ("hard", "refused_above", "expected"),
    [(4_096, 4_096, 4_096), (None, 65_536, 65_536), (None, 24_576, 10_240)],
)
def test_as_many_files_as_the_system_allows(
    monkeypatch: pytest.MonkeyPatch, hard: int | None, refused_above: int, expected: int
) -> None:
    """The last system allows fewer than it says."""
    resource = pytest.importorskip("resource")
    limits = [256, hard or resource.RLIM_INFINITY]

    def setrlimit(_: int, wanted: tuple[int, int]) -> None:
        if wanted[0] > refused_above:
            raise ValueError("current limit exceeds maximum limit")
        limits[:] = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    assert files() == limits[0] == expected
