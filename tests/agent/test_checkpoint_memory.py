"""The memory of a log's checkpoints: one growth proof for a batch, and every fork in it is seen."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes.log import Log, log_of
from tests.fakes.results import private_key

from bench_agent.base.errors import LogContradiction
from bench_agent.base.home import Home
from bench_agent.remote import checkpoint_memory
from bench_agent.remote.checkpoint_memory import CheckpointMemory
from bench_protocol.signing import envelope, merkle, tiles

RAWS = [envelope.seal("application/x", b"%d" % n, private_key()) for n in range(700)]
SERVER = "http://log.test"
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


def memory_of(home: Home, fetch: Callable[[str], bytes]) -> CheckpointMemory:
    return CheckpointMemory(home, SERVER, fetch, lambda: NOW, str)


def met(home: Home, log: Log) -> CheckpointMemory:
    memory = memory_of(home, log.fetch)
    memory.meet()
    log.fetched.clear()
    return memory


def remembered(memory: CheckpointMemory) -> str:
    assert memory.stored_server is not None
    return memory.stored_server.checkpoint


def grow(log: Log, count: int) -> list[int]:
    return [log.add(raw) for raw in RAWS[len(log.entries) : len(log.entries) + count]]


def sent(log: Log, indices: list[int], sizes: list[int]) -> list[tuple[bytes, Any]]:
    return [
        (RAWS[index], log.receipt(index, size)) for index, size in zip(indices, sizes, strict=True)
    ]


@pytest.mark.parametrize(
    "sizes",
    # The server may append a batch in several transactions, each with its own checkpoint.
    [[601], [605] * 5, [648] * 48, [604] * 4 + [609] * 5 + [612] * 3],
    ids=["one", "five", "many", "groups"],
)
def test_a_batch_costs_the_tiles_of_one_proof_and_one_write(
    tmp_path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(RAWS[:600])
    memory = met(Home(tmp_path), log)
    indices = grow(log, len(sizes))
    written: list[Path] = []
    real = checkpoint_memory.write_durably

    def write(path: Path, content: bytes) -> None:
        written.append(path)
        real(path, content)

    monkeypatch.setattr(checkpoint_memory, "write_durably", write)
    size = len(log.entries)
    memory.check(sent(log, indices, sizes))
    assert remembered(memory) == log.checkpoint(size)
    nodes = merkle.nodes_of(merkle.consistency_ranges(600, size))
    proof = {tiles.tile_address(level // 8, (i << level % 8) // 256, size) for level, i in nodes}
    assert sorted(log.fetched) == sorted(proof)
    assert len(written) == 1


def test_nothing_to_check_asks_for_nothing(tmp_path: Path) -> None:
    log = log_of(RAWS[:3])
    memory = met(Home(tmp_path), log)
    memory.check([])
    assert log.fetched == []


@pytest.mark.parametrize("change", [{"salt": "00" * 32}, {"proof": ""}, {"proof": 7}, {"salt": 7}])
def test_one_receipt_of_a_batch_that_proves_nothing(tmp_path: Path, change: Any) -> None:
    log = log_of(RAWS[:3])
    memory = met(Home(tmp_path), log)
    batch = sent(log, grow(log, 3), [6, 6, 6])
    before = remembered(memory)
    batch[1] = (batch[1][0], batch[1][1] | change)
    with pytest.raises(LogContradiction, match="its receipt proves nothing"):
        memory.check(batch)
    with pytest.raises(LogContradiction, match="its receipt proves nothing"):
        memory.check([(RAWS[3], None)])
    assert remembered(memory) == before


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    known=st.integers(1, 300),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=5),
    forked_at=st.one_of(st.none(), st.tuples(st.integers(0, 4), st.integers(0, 299))),
)
def test_every_checkpoint_of_a_batch_is_of_one_history_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    known: int,
    sizes: list[int],
    forked_at: tuple[int, int] | None,
) -> None:
    """In a fork one entry differs, and one of the receipts is under a checkpoint of the fork."""
    home = Home(tmp_path_factory.mktemp("home"))
    log = log_of(RAWS[:known])
    memory = met(home, log)
    newest = max(known, *sizes)
    grow(log, newest - known)
    batch = sent(log, [size - 1 for size in sizes], sizes)
    differs = False
    if forked_at is not None:
        number, entry = forked_at[0] % len(sizes), forked_at[1] % sizes[forked_at[0] % len(sizes)]
        fork = Log([*log.entries])
        fork.entries[entry] = bytes(32)
        if entry != sizes[number] - 1:  # the receipt's own entry stays as it was sent
            size = sizes[number]
            batch[number] = (RAWS[size - 1], fork.receipt(size - 1, size))
            differs = True
    if differs:
        before = remembered(memory)
        with pytest.raises(LogContradiction):
            memory.check(batch)
        assert remembered(memory) == before
        assert list(home.servers.glob("*.contradiction"))
    else:
        memory.check(batch)
        assert remembered(memory) == log.checkpoint(newest)


def test_what_another_process_saw_meanwhile_is_not_forgotten(tmp_path: Path) -> None:
    home = Home(tmp_path)
    log = log_of(RAWS[:10])
    memory = met(home, log)
    grow(log, 5)

    def fetch(path: str) -> bytes:
        other = memory_of(home, log.fetch)
        grow(log, 5)
        other.meet()
        other.agree("CC-BY-4.0")
        log.entries, rest = log.entries[:15], log.entries[15:]
        content = log.fetch(path)
        log.entries += rest
        return content

    beside = memory_of(home, fetch)
    beside.check(sent(log, [14], [15]))
    stored = memory.stored_server
    assert stored is not None
    assert stored.license == "CC-BY-4.0"
    assert stored.checkpoint == log.checkpoint(len(log.entries)) != log.checkpoint(15)
