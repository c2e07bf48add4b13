"""Chains, one per core, train the same as the whole batch; threads and memory of a process."""

import ctypes
import os
import subprocess
import sys

import pytest
from tests.fakes.workloads import cell_of, small, variant

from bench_agent.doctor.frameworks import system_package
from bench_agent.engines.cpu import blas, chains, threads
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.workloads import SGD

from .conftest import Opener, evaluated, installed, losses, without_dropout


@pytest.mark.parametrize(
    ("framework", "name"),
    [
        ("tensorflow", "mnist-cnn"),
        pytest.param("tensorflow", "fashion-lstm", marks=pytest.mark.long),
        pytest.param("mlx", "mnist-cnn", marks=pytest.mark.long),
        ("mlx", "fashion-lstm"),
    ],
)
def test_chains_train_as_the_whole_batch(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, framework: str, name: str
) -> None:
    workload = variant(without_dropout(small(workload_named(name), 64)), optimizer=SGD())
    runs = []
    for cores in (1, 2):
        monkeypatch.setattr(chains, "available_cores", lambda cores=cores: cores)
        session = opened(framework, workload, "tuned", 16)
        assert session.settings["chains"] == str(cores)
        runs.append([*losses(session, 5), *evaluated(session, workload)])
    assert runs[1] == pytest.approx(runs[0], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "batch_size", "cores", "count", "of_one_core", "blas_threads"),
    [
        ("mnist-cnn", 64, 2, 2, 2, 1),
        ("mnist-cnn", 64, 3, 2, 2, 3),
        ("mnist-cnn", 64, 12, 4, 8, 12),
        ("mnist-cnn", 64, 16, 4, 16, 1),
        ("mnist-cnn", 64, 96, 4, 16, 96),  # not fewer than four samples each
        ("mnist-cnn", 7, 2, 1, 1, 2),
        ("cifar100-vgg16", 128, 2, 1, 1, 2),
        ("cifar100-vgg16", 128, 16, 1, 1, 16),
        ("gpt-char", 8, 2, 1, 2, 1),
        ("cifar-resnet18", 128, 2, 1, 1, 2),
    ],
)
def test_how_many_chains(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    batch_size: int,
    cores: int,
    count: int,
    of_one_core: int,
    blas_threads: int,
) -> None:
    """Chains of one core have a BLAS thread each or share all."""
    monkeypatch.setattr(chains, "available_cores", lambda: cores)
    workload = workload_named(name)
    assert chains.chains(batch_size, workload.trained_parameter_count) == count
    assert chains.one_core_chains(workload, batch_size) == of_one_core
    assert chains.blas_threads(of_one_core) == blas_threads


POOLS = {
    "tensorflow": "tf_intra_op_threads",
    "mlx": "blas_threads",
    "jax": "jax_cpu_threads",
    "torch": "torch_threads",
}


@pytest.mark.parametrize("framework", POOLS)
@pytest.mark.parametrize(("name", "batch_size"), [("mnist-cnn", 64), ("cifar100-vgg16", 128)])
def test_no_pool_of_tuned_is_smaller_than_that_of_naive(
    monkeypatch: pytest.MonkeyPatch, framework: str, name: str, batch_size: int
) -> None:
    """With 16 cores. A pool belongs to the process: all chains share it."""
    engine, workload = installed(framework), workload_named(name)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(blas, "set_threads", lambda count: True)
    for module in filter(None, map(sys.modules.get, (chains.__name__, type(engine).__module__))):
        monkeypatch.setattr(module, "available_cores", lambda: 16, raising=False)

    def pool(recipe: str) -> int:
        for name in (*blas.THREADS, "TF_NUM_INTRAOP_THREADS"):
            os.environ.pop(name, None)
        engine.load(workload, cell_of(workload, framework, recipe, batch_size))
        threads = int(engine.settings().get(POOLS[framework], 0)) or 16  # 0: all cores
        if (framework, threads) == ("mlx", 1):  # then every chain has a thread of its own
            return chains.one_core_chains(workload, batch_size)
        return threads

    assert pool("tuned") >= pool("naive")


@pytest.mark.parametrize(
    ("name", "batch_size", "quota", "count"),
    [
        ("mnist-dense", 32, None, 1),
        ("mnist-dense", 512, None, 16),
        ("fashion-mlp", 128, None, 16),
        ("fashion-mlp", 128, 2.5, 3),
        ("fashion-convnet", 128, 0.5, 1),
    ],
)
def test_a_small_step_of_torch_has_one_thread_others_what_the_process_may_use(
    monkeypatch: pytest.MonkeyPatch, name: str, batch_size: int, quota: float | None, count: int
) -> None:
    monkeypatch.setattr(threads, "available_cores", lambda: 16)
    monkeypatch.setattr(threads.cgroup, "quota_cores", lambda: quota)
    assert threads.of_a_step(workload_named(name), batch_size) == count


def test_torch_opens_a_session_with_its_threads_and_says_so(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in threads.CHOICES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "available_cores", lambda: 2)
    engine, workload = installed("torch"), workload_named("mnist-dense")
    opened("torch", workload, "tuned")
    assert engine.settings()["torch_threads"] == "1"
    engine.products(8)
    assert engine.settings()["torch_threads"] == str(threads.usable_cores())


@pytest.mark.parametrize("name", threads.CHOICES)
def test_the_threads_that_the_user_chose_stay(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for other in threads.CHOICES:
        monkeypatch.delenv(other, raising=False)
    assert threads.chosen_here()
    monkeypatch.setenv(name, "2")
    assert not threads.chosen_here()


@pytest.mark.only_on("linux")
def test_openblas_takes_a_share_of_the_cores_unless_the_user_chose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in blas.THREADS:
        monkeypatch.delenv(name, raising=False)
    blas.preload()
    loaded = ctypes.CDLL(None)
    setters = [name for name in blas.SET_THREADS if hasattr(loaded, name)]
    if not setters:
        command = system_package("g++") or "install g++"
        pytest.skip(f"no OpenBLAS and no C compiler: {command}")
    threads = getattr(loaded, setters[0].replace("set", "get"))
    before = threads()
    assert blas.set_threads(1)
    assert threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert not blas.set_threads(before)
    assert threads() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert blas.set_threads(before)


# Pages (minor faults) that ten blocks of 16 MB take, one after the other.
FAULTS = """
import resource
import numpy as np
from bench_agent.engines.cpu import malloc

kept = {keep} and malloc.keep()
def use():
    np.ones(2**21).sum()
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    use()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _run(keep: bool, **environment: str) -> tuple[bool, int]:
    script = FAULTS.format(keep=keep)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "NUMPY_MADVISE_HUGEPAGE": "0", **environment},
    )
    keeps, faults = done.stdout.split()
    return keeps == "True", int(faults)


@pytest.mark.only_on("linux")
def test_a_process_keeps_what_it_frees() -> None:
    keeps, faults = _run(keep=True)
    assert keeps
    _, usual = _run(keep=False)
    assert faults < 100
    assert usual > 1000


def test_a_users_choice_stays() -> None:
    assert _run(keep=True, MALLOC_MMAP_THRESHOLD_="65536")[0] is False
