"""``bench-server serve`` prints immediately that it starts, and imports only what it needs."""

import gc
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.fakes.live import STARTING
from typer.testing import CliRunner

from bench_server.cli.main import main as cli
from bench_server.settings import Settings

NEEDED = ("sqlalchemy", "fastapi", "uvicorn", "bench_server.app")
NOT_NEEDED = (
    "alembic",
    "scipy",
    "numpy",
    "pyarrow",
    "matplotlib",
    "markdown_it",
    "cryptography.x509",
    "bench_server.cli.operator",
)
PROGRAM = f"""
import sys
import threading

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in {(*NEEDED, *NOT_NEEDED)}:
            print("import", name, flush=True)
            if any(thread.name == "projector" for thread in threading.enumerate()):
                print("beside the projector", flush=True)

sys.meta_path.insert(0, Watch())
from bench_server.cli.main import main
main(["serve", "--port", "0"])
"""
SERVE = "from bench_server.cli.main import main\nmain(['serve', '--port', '0'])"


@contextmanager
def started(program: str, database: Path, folder: Path) -> Iterator[tuple[int, list[str]]]:
    copied = shutil.copy(database, folder / "server.db")
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ
        | {
            "BENCH_SERVER_DATABASE_URL": f"sqlite:///{copied}",
            "BENCH_SERVER_KEYS_DIR": str(folder / "server-keys"),
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = []
    for line in process.stdout or ():
        lines.append(line)
        if line.startswith("listening on http://127.0.0.1:"):
            break
    try:
        yield process.pid, lines
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.mark.process
def test_the_first_line_comes_before_anything_heavy_is_imported(
    migrated_file: Path, tmp_path: Path
) -> None:
    with started(PROGRAM, migrated_file, tmp_path) as (_, lines):
        pass
    assert lines[0] == STARTING
    assert lines[-1].startswith("listening on ")
    # Projection begins after the imports: after an outage it has much to do and would slow them.
    assert "beside the projector\n" not in lines
    assert {line.removeprefix("import ").strip() for line in lines[1:-1]} == set(NEEDED)


def test_a_start_that_fails_leaves_the_garbage_collector_on(tmp_path: Path) -> None:
    wrong = ["serve", "--database-url", f"sqlite:///{tmp_path / 'empty.db'}"]
    done = CliRunner().invoke(cli, wrong)
    assert done.exit_code == 2
    assert (done.stdout, gc.isenabled()) == (STARTING, True)


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"HOST": "0.0.0.0"}, True),
        ({"HOST": "::"}, True),
        ({"HOST": "bench.example"}, True),
        ({"TRUSTED_PROXIES": "127.0.0.1"}, True),
        ({"HOST": "0.0.0.0", "ORIGIN": "bench.example"}, False),
        ({"HOST": "::1"}, False),
        ({"HOST": "localhost"}, False),
        ({}, False),
    ],
)
def test_a_server_that_others_reach_needs_a_name(settings: dict[str, str], refused: bool) -> None:
    """The log keeps its first name for ever."""
    given = {name.lower(): value for name, value in settings.items()}
    assert Settings(**given).origin_fits != refused
    if refused:
        environment = {f"BENCH_SERVER_{name}": value for name, value in settings.items()}
        done = CliRunner().invoke(cli, ["serve"], env=environment)
        assert done.exit_code == 2
        assert "BENCH_SERVER_ORIGIN is not set" in done.stderr


@pytest.mark.process
@pytest.mark.parametrize("workers", ["1", "2"])
def test_systemd_is_told_that_the_server_answers(
    migrated_file: Path, tmp_path: Path, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``Type=notify``: what starts after it finds a server that answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("BENCH_SERVER_WORKERS", workers)
        with started(SERVE, migrated_file, tmp_path) as (_, lines):
            assert systemd.recv(100) == b"READY=1"
            address = lines[-1].split()[-1]
            assert httpx.get(f"{address}/readyz", timeout=60).status_code == 200


@pytest.mark.process
def test_no_request_holds_up_the_end_of_a_server(
    migrated_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body that never comes: ``started`` waits half a minute for the end."""
    monkeypatch.setenv("BENCH_SERVER_BODY_SECONDS", "3600")
    head = b"POST /api/v1/results HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with socket.socket() as client, started(SERVE, migrated_file, tmp_path) as (_, lines):
        client.connect(("127.0.0.1", int(lines[-1].rpartition(":")[2])))
        client.sendall(head + b"Content-Length: 100\r\n\r\n{")
        assert httpx.get(f"{lines[-1].split()[-1]}/readyz", timeout=60).status_code == 200


@pytest.mark.process
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no arenas")
def test_threads_share_two_arenas_of_memory(migrated_file: Path, tmp_path: Path) -> None:
    """Each arena keeps the memory of its largest request for good."""
    with started(SERVE, migrated_file, tmp_path) as (pid, lines):
        address = lines[-1].split()[-1]

        def read(_: int) -> int:
            return httpx.get(f"{address}/api/v1/results", timeout=60).status_code

        with ThreadPoolExecutor(12) as readers:
            assert set(readers.map(read, range(96))) == {200}
        task = Path(f"/proc/{pid}")
        assert len(list((task / "task").iterdir())) > 4
        regions = [line.split() for line in (task / "maps").read_text().splitlines()]
    # A heap of an arena begins at a multiple of 64 MiB (HEAP_MAX_SIZE of glibc's arena.c).
    begins = [int(region[0].partition("-")[0], 16) for region in regions if len(region) == 5]
    assert sum(begin % (64 * 2**20) == 0 for begin in begins) <= 2
