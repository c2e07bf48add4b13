"""The outbox goes to a real server in batches: receipts, and what a kill leaves."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.fakes import outboxes
from tests.fakes.live import running_server

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.remote.client import Client
from bench_agent.remote.submit import submit


class Wire(httpx.HTTPTransport):
    def __init__(self) -> None:
        super().__init__()
        self.change: Callable[[httpx.Request, bytes], bytes] = lambda request, content: content

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        content = self.change(request, response.read())
        return httpx.Response(response.status_code, content=content)


@pytest.fixture(scope="module")
def address(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    database = shutil.copy(migrated_file, folder / "server.db")
    with running_server(f"sqlite:///{database}", folder) as found:
        yield found


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def client(address: str, home: Home, wire: Wire) -> Iterator[Client]:
    made = Client(address, load_or_create_key(home), home, transport=wire)
    made.enroll()
    assert made.checkpoints is not None
    made.checkpoints.agree("CC-BY-4.0")
    yield made
    made.close()


def log_size(address: str) -> int:
    size: int = httpx.get(f"{address}/api/v1/log").json()["size"]
    return size


class Killed(BaseException):
    """What no code of the agent catches."""


@pytest.mark.parametrize("at", ["answer", "proof", "first move", "second move"])
def test_a_kill_between_post_and_move_posts_again_and_gets_the_first_receipts(
    address: str, home: Home, client: Client, wire: Wire, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = outboxes.put_new(home, 5)
    before = log_size(address)
    receipts: list[str] = []
    moves = 0

    def cut(request: httpx.Request, content: bytes) -> bytes:
        if request.method == "POST":
            receipts.append(json.dumps([line["result"] for line in lines_of(content)]))
        if at == ("answer" if request.method == "POST" else "proof") and receipts:
            raise Killed
        return content

    real = Path.replace

    def replace(path: Path, target: Path) -> Path:
        nonlocal moves
        if path.parent.name == "pending" and target.parent.name == "sent":
            moves += 1
            if at == ("first move", "second move")[min(moves, 2) - 1]:
                raise Killed
        return real(path, target)

    wire.change = cut
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        with pytest.raises(Killed):
            list(submit(client, outbox))
    moved = {"second move": 1}.get(at, 0)
    assert (len(list(outbox.pending())), len(list(outbox.sent()))) == (5 - moved, moved)

    wire.change = lambda request, content: content
    after_kill = Client(address, load_or_create_key(home), home, transport=wire)
    assert [d.state for d in submit(after_kill, outbox)] == ["sent"] * (5 - moved)
    firsts = {result["id"]: result["receipt"] for result in json.loads(receipts[0])}
    assert {(e.answer or {})["id"]: (e.answer or {})["receipt"] for e in outbox.sent()} == firsts
    assert log_size(address) == before + 5
    after_kill.close()


def lines_of(content: bytes) -> list[dict[str, dict[str, object]]]:
    return [json.loads(line) for line in content.splitlines()]
