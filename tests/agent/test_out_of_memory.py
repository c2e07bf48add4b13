"""Out of memory is distinguished from a crash, for every way in which a worker is killed."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.agent.test_worker_process import BAD_WORKER, QUICK, a_job
from tests.engines.conftest import installed
from tests.fakes.workloads import job_of

from bench_agent.run import exit_cause
from bench_agent.run.exit_cause import memory_kills, ran_out_of_memory
from bench_agent.run.worker_process import run_task, worker_command
from bench_protocol.catalogue.layers import Conv2D, Dense, Flatten, MaxPool2D
from bench_protocol.catalogue.workloads import SGD, DataSet, Workload
from bench_protocol.payload.result import Failed

GROUPS = Path("/sys/fs/cgroup/memory")
ADDRESS_SPACE_BYTES = 6 * 2**30
needs_groups = pytest.mark.skipif(
    not os.access(GROUPS, os.W_OK), reason="needs root and a memory control group of version 1"
)


@pytest.mark.parametrize(
    ("exit_code", "said", "kills", "expected"),
    [
        (-signal.SIGKILL, "", 1, True),
        (-signal.SIGKILL, "", 0, False),
        (-signal.SIGKILL, "CUDA out of memory", 0, False),
        (-signal.SIGABRT, "terminate called after throwing 'std::bad_alloc'", 0, True),
        (-signal.SIGABRT, "assertion failed", 1, False),
        (-signal.SIGSEGV, "", 1, False),
        (1, "MemoryError: Unable to allocate 4.0 GiB", 0, True),
        (0, "out of memory", 0, False),
        (None, "out of memory", 0, False),
    ],
)
def test_what_ended_a_worker(
    tmp_path: Path, exit_code: int | None, said: str, kills: int, expected: bool
) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 100_000 + said)
    assert ran_out_of_memory(exit_code, log, kills) is expected
    assert not ran_out_of_memory(exit_code, tmp_path / "none", 0)


def test_the_kernels_count_of_its_kills(tmp_path: Path) -> None:
    assert memory_kills(tmp_path) == 0
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "vmstat").write_text("pgfault 7\noom_kill 3\noom_kill_other 9\n")
    assert memory_kills(tmp_path) == 3


@contextmanager
def group_of(limit_bytes: int) -> Iterator[list[str]]:
    group = GROUPS / f"trainmark-test-{os.getpid()}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
    try:
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    finally:
        group.rmdir()


def test_a_worker_killed_while_the_kernels_count_rises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = tmp_path / "proc" / "vmstat"
    count.parent.mkdir()
    count.write_text("oom_kill 3\n")
    monkeypatch.setattr(exit_cause, "memory_kills", lambda: memory_kills(tmp_path))
    rises = ["sh", "-c", f'echo oom_kill 4 > {count}; exec "$@"', "sh"]
    command = [*rises, sys.executable, str(BAD_WORKER), "is killed"]
    outcome = run_task(a_job(), tmp_path / "log", limits=QUICK, command=command).outcome
    assert isinstance(outcome, Failed)
    assert (outcome.kind, outcome.exit_code) == ("out_of_memory", -signal.SIGKILL)


# Ten layers whose outputs take 1 GiB each.
WIDE = Workload(
    name="wide",
    data_set=DataSet(
        name="few", sample_shape=(256, 256, 1), classes=10, train_samples=64, test_samples=64
    ),
    layers=(
        *(Conv2D(filters=64, kernel=1, padding="same") for _ in range(10)),
        MaxPool2D(size=256, stride=256),
        Flatten(),
        Dense(units=10, activation="linear"),
    ),
    optimizer=SGD(),
    batch_size=64,
    epochs=1,
)


def trained(framework: str, prefix: list[str], log: Path) -> Failed:
    outcome = run_task(job_of(WIDE, framework), log, command=[*prefix, *worker_command()]).outcome
    assert isinstance(outcome, Failed)
    return outcome


@pytest.mark.long
@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_a_framework_that_cannot_allocate_says_so(tmp_path: Path, framework: str) -> None:
    installed(framework)
    limited = ["sh", "-c", f'ulimit -v {ADDRESS_SPACE_BYTES // 1024}; exec "$@"', "sh"]
    outcome = trained(framework, limited, tmp_path / "log")
    assert (outcome.kind, outcome.phase) == ("out_of_memory", "warm_up"), outcome


@pytest.mark.long
@needs_groups
@pytest.mark.parametrize("framework", ["mlx", "torch"])
def test_a_framework_that_the_kernel_stops(tmp_path: Path, framework: str) -> None:
    """The usual end on Linux; MLX on a CPU knows no other, it crashes where malloc refuses."""
    installed(framework)
    with group_of(2 * 2**30) as inside:
        outcome = trained(framework, inside, tmp_path / "log")
    assert (outcome.kind, outcome.phase) == ("out_of_memory", "warm_up"), outcome
