"""Downloads from mirrors that cut, lie, stall or are down, and into unwritable folders."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.fakes import datasets
from tests.fakes.disk import full_disk
from tests.fakes.mirror import Mirror, serving
from tests.fakes.ports import free_port

from bench_agent.base.errors import DataProblem
from bench_agent.data import inventory
from bench_agent.data.fetch import fetch, open_client
from bench_protocol.real_data.manifest import DataFile

CONTENT = bytes(range(256)) * 400
HALF = len(CONTENT) // 2


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with open_client(httpx.Timeout(0.5)) as opened:
        yield opened


def file_at(*mirrors: Mirror | str) -> DataFile:
    urls = (mirror if isinstance(mirror, str) else mirror.url for mirror in mirrors)
    return datasets.entry("set/file.gz", CONTENT, *urls)


def left(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def nobody() -> str:
    return f"http://127.0.0.1:{free_port()}/file"


def test_a_file_comes_whole(tmp_path: Path, stack: ExitStack, client: httpx.Client) -> None:
    path = fetch(file_at(stack.enter_context(serving(Mirror(CONTENT)))), tmp_path, client)
    assert (path.read_bytes(), left(tmp_path)) == (CONTENT, {"set/file.gz"})


@pytest.mark.parametrize("tells_length", [True, False])
def test_a_cut_download_goes_on_where_it_stopped(
    tmp_path: Path, stack: ExitStack, client: httpx.Client, tells_length: bool
) -> None:
    cutting = Mirror(CONTENT, cut_after=HALF + 1, tells_length=tells_length)
    mirror = stack.enter_context(serving(cutting))
    assert fetch(file_at(mirror), tmp_path, client).read_bytes() == CONTENT
    assert mirror.requested_ranges == [None, f"bytes={HALF + 1}-"]


@pytest.mark.parametrize(
    ("left_over", "ranges"),
    [
        (CONTENT[:HALF], True),
        (CONTENT[:HALF], False),  # the mirror knows none
        *((wrong, True) for wrong in (CONTENT[:HALF][::-1], CONTENT * 2, CONTENT[::-1])),
    ],
)
def test_what_an_interrupted_run_left_is_continued_or_thrown_away(
    tmp_path: Path, stack: ExitStack, client: httpx.Client, left_over: bytes, ranges: bool
) -> None:
    mirror = stack.enter_context(serving(Mirror(CONTENT, ranges=ranges)))
    datasets.put(tmp_path, "set/file.gz.partial", left_over)
    assert fetch(file_at(mirror), tmp_path, client).read_bytes() == CONTENT
    if left_over == CONTENT[:HALF]:
        assert mirror.requested_ranges == [f"bytes={HALF}-"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (Mirror(CONTENT[:-1] + b"?"), "SHA-256"),
        (Mirror(CONTENT + b"more"), "more than 102,400 bytes"),
        (Mirror(b"<html>log in to the network</html>"), "34 of 102,400 bytes"),
        (Mirror(CONTENT, status=404), "answered 404"),
        (Mirror(CONTENT, status=503), "answered 503"),
        (Mirror(CONTENT, cut_after=0), "0 of 102,400 bytes"),
        (Mirror(CONTENT, cut_after=HALF, ranges=False), "51,200 of 102,400 bytes"),
        (Mirror(CONTENT, cut_after=0, stalls=True), "timed out"),
        (Mirror(CONTENT, cut_after=HALF, stalls=True, ranges=False), "timed out"),
    ],
)
def test_a_bad_mirror_is_named_with_its_reason_and_the_next_one_asked(
    tmp_path: Path, stack: ExitStack, client: httpx.Client, bad: Mirror, reason: str
) -> None:
    bad.requested_ranges.clear()
    bad.ended.clear()
    stack.enter_context(serving(bad))
    with pytest.raises(DataProblem, match=reason) as raised:
        fetch(file_at(bad), tmp_path, client)
    assert bad.url in str(raised.value)
    assert str(tmp_path) in str(raised.value)
    assert "set/file.gz" not in left(tmp_path)
    good = stack.enter_context(serving(Mirror(CONTENT)))
    assert fetch(file_at(bad, nobody(), good), tmp_path, client).read_bytes() == CONTENT
    assert left(tmp_path) == {"set/file.gz"}


def test_a_mirror_that_is_away(tmp_path: Path, client: httpx.Client) -> None:
    with pytest.raises(DataProblem, match="refused"):
        fetch(file_at(nobody()), tmp_path, client)


def test_a_stalling_mirror_is_asked_again_while_it_brings_more(
    tmp_path: Path, stack: ExitStack, client: httpx.Client
) -> None:
    mirror = stack.enter_context(serving(Mirror(CONTENT, cut_after=HALF, stalls=True)))
    assert fetch(file_at(mirror), tmp_path, client).read_bytes() == CONTENT
    assert mirror.requested_ranges == [None, f"bytes={HALF}-"]


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, stack: ExitStack, client: httpx.Client
) -> None:
    mirror = stack.enter_context(serving(Mirror(CONTENT)))
    datasets.put(tmp_path, "taken", b"a file where a folder should be")
    with pytest.raises(DataProblem, match=r"taken is no folder.*BENCH_DATA_DIR"):
        fetch(file_at(mirror), tmp_path / "taken", client)


def test_a_full_disk_keeps_what_came_and_the_next_run_goes_on(
    tmp_path: Path, stack: ExitStack, client: httpx.Client
) -> None:
    mirror = stack.enter_context(serving(Mirror(CONTENT)))
    with full_disk(HALF), pytest.raises(DataProblem, match="File too large.*BENCH_DATA_DIR"):
        fetch(file_at(mirror), tmp_path, client)
    assert left(tmp_path) == {"set/file.gz.partial"}
    assert fetch(file_at(mirror), tmp_path, client).read_bytes() == CONTENT
    assert mirror.requested_ranges[-1] not in (None, "bytes=0-")


def test_fetching_all_takes_what_is_there_and_says_what_failed(
    tmp_path: Path, stack: ExitStack
) -> None:
    content = datasets.npz()
    mirror = stack.enter_context(serving(Mirror(content)))
    manifest = datasets.mnist_manifest(mirror.url)
    said: list[str] = []
    places = (tmp_path / "data", tmp_path / "keras")
    assert inventory.fetch_all((manifest,), said.append, places) == 0
    assert (places[0] / "mnist.npz").read_bytes() == content
    assert inventory.fetch_all((manifest,), said.append, places) == 0
    assert len(mirror.requested_ranges) == 1
    (places[0] / "mnist.npz").write_bytes(bytes(len(content)))
    assert inventory.fetch_all((manifest,), said.append, places) == 0
    assert (places[0] / "mnist.npz").read_bytes() == content
    gone = datasets.mnist_manifest(nobody())
    assert inventory.fetch_all((gone,), said.append, (tmp_path / "other",)) == 1
    assert "no mirror gave mnist.npz" in said[-1]
