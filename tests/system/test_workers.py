"""Two server processes on one database: nothing lost, nothing stored twice, one log."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from tests.fakes import results
from tests.fakes.client import JSON
from tests.fakes.live import running_server

from bench_server.cli import serve


def test_two_workers_serve_one_log(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_SERVER_WORKERS", "2")
    bodies = [results.sealed(results.make_result()) for _ in range(12)]
    with running_server(database, tmp_path) as address, httpx.Client(base_url=address) as http:
        http.post("/api/v1/keys", content=results.enrollment(), headers=JSON, timeout=60)

        def post(body: bytes) -> httpx.Response:
            # A connection of its own: it may reach either process.
            place = f"{address}/api/v1/results"
            return httpx.post(place, content=body, headers=JSON, timeout=60)

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(post, bodies * 2))
        assert sorted(a.status_code for a in answers) == [200] * 12 + [201] * 12
        indices = {a.json()["receipt"]["log_index"] for a in answers}
        assert indices == set(range(2, 14))
        assert http.get("/api/v1/log", timeout=60).json()["size"] == 14
        port = int(address.rpartition(":")[2])
        if sys.platform == "linux":
            assert len(_listening(port)) == 2, "each worker listens by itself"
        with pytest.raises(OSError, match="in use"):
            serve.bind("127.0.0.1", port)


def _listening(port: int) -> set[int | None]:
    return {
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.laddr
        and connection.laddr.port == port
        and connection.status == psutil.CONN_LISTEN
    }
