"""Worker processes that misbehave: always an answer, never an exception."""

import errno
import os
import re
import string
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import assume, given, settings, strategies
from tests.fakes.results import make_cell
from tests.fakes.waiting import wait_for

from bench_agent.base.messages import BlockDone, Job, PhaseBegan, Timing
from bench_agent.run.worker_process import Limits, run_task
from bench_agent.worker.environment import CHANGES_SPEED, worker_environment
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.seeded import DEFAULT_SEED
from bench_protocol.payload.result import Failed

BAD_WORKER = Path(__file__).parent.parent / "fakes" / "bad_worker.py"
NAME_LETTERS = string.ascii_letters + string.digits + "_"
QUICK = Limits(silence_seconds=1.5, stall_seconds=1.5, total_seconds=3.0)


def a_job() -> Job:
    workload = workload_named("mnist-cnn")
    return Job(workload=workload, cell=make_cell(), seed=DEFAULT_SEED, timing=Timing())


def run_bad(how: str, log: Path, limits: Limits = QUICK) -> Failed:
    answer = run_task(a_job(), log, limits=limits, command=[sys.executable, str(BAD_WORKER), how])
    assert isinstance(answer.outcome, Failed)
    return answer.outcome


@pytest.mark.parametrize(
    ("how", "kind", "phase", "exception_class", "exit_code"),
    [
        ("segfaults", "crashed", "timing", None, -11),
        ("is killed", "crashed", "timing", None, -9),
        ("exits in silence", "crashed", "timing", None, 0),
        ("raises", "crashed", "timing", None, 1),
        ("dies before reading", "crashed", "start", None, 7),
        ("prints garbage", "crashed", "timing", "GarbledAnswer", None),
        ("answers nonsense", "crashed", "timing", "GarbledAnswer", None),
        ("answers without end", "crashed", "timing", "GarbledAnswer", None),
        ("hangs before the first block", "stalled", "timing", None, None),
        ("hangs between blocks", "stalled", "timing", None, None),
        ("never ends", "timeout", "timing", None, None),
        ("cannot allocate", "out_of_memory", "timing", None, -6),
    ],
)
def test_a_misbehaving_worker_becomes_a_failed_outcome(
    tmp_path: Path,
    how: str,
    kind: str,
    phase: str,
    exception_class: str | None,
    exit_code: int | None,
) -> None:
    outcome = run_bad(how, tmp_path / "log")
    assert (outcome.kind, outcome.phase) == (kind, phase)
    assert (outcome.exception_class, outcome.exit_code) == (exception_class, exit_code)


def test_nothing_of_a_worker_stays_behind(tmp_path: Path) -> None:
    outcome = run_bad("leaves a child", tmp_path / "log")
    # The child holds the answer's pipe open, so a time limit ends this, not the end of file.
    assert outcome.kind == "stalled"
    # The kernel may still be clearing it away.
    assert wait_for(lambda: not any("leaves a child" in name for name in running_commands()))


def running_commands() -> list[str]:
    processes = psutil.process_iter(["cmdline"])  # None where it may not be read
    return [" ".join(process.info["cmdline"] or ()) for process in processes]


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))  # on Linux and on macOS


def test_what_a_library_prints_goes_to_the_log(tmp_path: Path) -> None:
    run_bad("segfaults", tmp_path / "log")
    assert "a library prints" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("where", "number"),
    [
        ("os.pipe", errno.EMFILE),
        ("subprocess.Popen", errno.EAGAIN),
        ("selectors.DefaultSelector", errno.EMFILE),
    ],
)
def test_a_system_without_resources_is_an_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, number: int
) -> None:
    """No process or file descriptor leaks, and the run continues with the next cell."""
    before = open_descriptors()

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(f"bench_agent.run.worker_process.{where}", refuse)
    failed = run_bad("exits in silence", tmp_path / "log")
    assert (failed.kind, failed.phase) == ("crashed", "start")
    assert failed.exception_class in ("OSError", "BlockingIOError")
    assert os.strerror(number) in (tmp_path / "log").read_text()
    assert open_descriptors() == before


def test_messages_reach_the_listener_in_order(tmp_path: Path) -> None:
    heard: list[PhaseBegan | BlockDone] = []
    command = [sys.executable, str(BAD_WORKER), "hangs between blocks"]
    run_task(a_job(), tmp_path / "log", limits=QUICK, command=command, listener=heard.append)
    assert [message.event for message in heard] == ["phase", "block"]


def test_patience_between_blocks_grows_with_the_blocks(tmp_path: Path) -> None:
    # A block of 1 ms allows 20 ms of silence, but never less than stall_seconds.
    limits = Limits(silence_seconds=60, stall_seconds=0.3, stall_factor=20, total_seconds=60)
    began = time.monotonic()
    assert run_bad("hangs between blocks", tmp_path / "log", limits).kind == "stalled"
    assert time.monotonic() - began < 30  # far below the silence allowed before the first block


def test_an_evaluation_may_be_silent_for_longer_than_a_block(tmp_path: Path) -> None:
    limits = Limits(silence_seconds=30, stall_seconds=0.2, total_seconds=60)
    outcome = run_bad("evaluates for long", tmp_path / "log", limits)
    assert (outcome.kind, outcome.phase, outcome.exit_code) == ("crashed", "evaluate", 3)


def test_the_worker_sees_an_allow_list_of_the_environment() -> None:
    environ = {
        "PATH": "/bin",
        "HOME": "/home/someone",
        "OMP_NUM_THREADS": "2",
        "CUDA_VISIBLE_DEVICES": "1",
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "TURN_OFF_REMAPPER": "1",
        "MPS_ENABLE_GEMM_PLUGIN": "0",
        "MPS_TOKEN": "secret",
        "PYTHONPATH": "src",
        "PYTHONSTARTUP": "evil.py",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "BENCH_DATA_DIR": "data",
        "BENCH_SERVER": "https://user:secret@example.org",
        "GITHUB_TOKEN": "secret",
        "JAX_ACCESS_TOKEN": "secret",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "MALLOC_ARENA_MAX": "2",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    }
    passed = worker_environment(environ)
    secrets = {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "JAX_ACCESS_TOKEN", "MPS_TOKEN"}
    assert set(environ) - set(passed) == {"PYTHONSTARTUP", "BENCH_SERVER", *secrets}


@settings(max_examples=100)
@given(strategies.from_regex(CHANGES_SPEED, fullmatch=True, alphabet=NAME_LETTERS))
def test_what_is_recorded_as_changing_speed_reaches_the_worker(name: str) -> None:
    assume(not re.search("TOKEN|SECRET|PASSWORD|CREDENTIAL", name))
    assert name in worker_environment({name: "1"})
