"""A repeat that was reported as finished is on disk, after a power cut and on a full disk."""

import resource
from pathlib import Path
from typing import Any

import pytest
from tests.agent.test_resume import OPEN, Quiet, begun, go_on, measure, stored_repeats
from tests.fakes.disk import Disk, full_disk
from tests.fakes.outboxes import put
from tests.fakes.results import make_result, private_key

from bench_agent.base.errors import HomeProblem
from bench_agent.base.home import Home, read_or_make_private, write_durably
from bench_agent.base.keys import load_or_create_key, machine_hash
from bench_agent.base.messages import Answer, Job
from bench_agent.remote.outbox import Outbox
from bench_agent.run import journal
from bench_agent.run.context import RunContext
from bench_agent.run.run import run_plan
from bench_agent.run.worker_process import run_task
from bench_protocol.payload.result import Result
from bench_protocol.signing.keys import key_id


class CutsPower(Quiet):
    """Copies the home as a power cut at the end of each repeat would leave it."""

    def __init__(self, disk: Disk, home: Home, folder: Path) -> None:
        super().__init__()
        self.disk, self.home, self.folder = disk, home, folder
        self.reported: list[set[tuple[str, int]]] = []
        self.homes: list[Home] = []

    def finished(self, result: Result) -> None:
        before = self.reported[-1] if self.reported else set()
        self.reported.append(before | {(result.cell.digest, result.repeat)})
        target = self.folder / f"cut{len(self.homes)}"
        self.disk.left_of(self.home.root.parent, target)
        self.homes.append(Home(target / self.home.root.name))


def test_every_finished_repeat_survives_a_power_cut(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    home = Home(tmp_path / "disk" / "home")
    with Disk().watched() as disk:
        note = begun(home)
        owner = key_id(load_or_create_key(home).public_key())
        hashed = machine_hash(home, b"x")
        cuts = CutsPower(disk, home, tmp_path)
        run_plan(note, RunContext(home, cuts, run_job=measure, gate=OPEN))
    assert len(cuts.homes) == 8
    for reported, left in zip(cuts.reported, cuts.homes, strict=True):
        assert stored_repeats(left) == reported
        assert key_id(load_or_create_key(left).public_key()) == owner
        assert machine_hash(left, b"x") == hashed
        summary, quiet = go_on(left)
        assert quiet.skips == len(reported)
        assert len(summary.results) == len(stored_repeats(left)) == 8


def test_without_the_syncs_the_disk_forgets(tmp_path: Path) -> None:
    """The test above can fail: a plain write is lost, and so is a file in an unsynced folder."""
    (tmp_path / "disk").mkdir()
    with Disk().watched() as disk:
        write_durably(tmp_path / "disk" / "kept" / "a", b"a")
        (tmp_path / "disk" / "kept" / "b").write_bytes(b"b")
    disk.left_of(tmp_path / "disk", tmp_path / "left")
    assert [path.name for path in (tmp_path / "left" / "kept").iterdir()] == ["a"]


def test_a_disk_that_fills_up_loses_nothing_that_was_told(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    note = begun(home)
    calls = 0

    def measure_and_fill(job: Job, *others: Any) -> Answer:
        nonlocal calls
        calls += 1
        if calls == 4:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        return measure(job)

    context = RunContext(home, Quiet(), run_job=measure_and_fill, gate=OPEN)
    with full_disk(resource.RLIM_INFINITY), pytest.raises(HomeProblem, match="run --resume"):
        run_plan(note, context)
    assert len(stored_repeats(home)) == 3
    assert not list(home.root.rglob("*.partial"))
    assert journal.unfinished(home)
    summary, quiet = go_on(home)
    assert (quiet.skips, len(summary.results)) == (3, 8)


def test_a_full_disk_leaves_the_old_file_whole(tmp_path: Path) -> None:
    write_durably(tmp_path / "a", b"old")
    with full_disk(100), pytest.raises(HomeProblem, match="free space"):
        write_durably(tmp_path / "a", b"new" * 100)
    with full_disk(100), pytest.raises(HomeProblem, match="free space"):
        read_or_make_private(tmp_path / "key", lambda: b"new" * 100)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]


def test_a_log_that_cannot_be_written_is_said_with_its_hint(tmp_path: Path) -> None:
    from tests.agent.test_worker_process import a_job

    (tmp_path / "log").mkdir()
    with pytest.raises(HomeProblem, match="cannot write .*log"):
        run_task(a_job(), tmp_path / "log")


def test_an_answer_that_cannot_be_kept_leaves_the_envelope_waiting(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    entry = put(outbox, make_result(), private_key())
    with full_disk(100), pytest.raises(HomeProblem):
        outbox.move(entry, "sent", {"id": "x" * 200})
    assert len(list(outbox.pending())) == 1
    assert not list(outbox.sent())
