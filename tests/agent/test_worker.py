"""The worker: phases, failures and the answer; then a real one."""

import math
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.engine import FakeEngine, answer, failed, measured
from tests.fakes.workloads import TINY, job_of

from bench_agent.base.messages import BlockDone, PhaseBegan, ProbeTask
from bench_agent.engines.seam import Products, WrongResult
from bench_agent.run.worker_process import run_task
from bench_agent.worker import environment
from bench_agent.worker import main as worker
from bench_agent.worker.failures import kind_of
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.seeded import data_digest, generated_data


def test_a_repeat_goes_through_its_phases(engine: FakeEngine) -> None:
    ended, messages = answer(engine, epochs=2, warm_up_seconds=0.004, block_seconds=0.004)
    phases = [message.phase for message in messages if isinstance(message, PhaseBegan)]
    assert phases == ["import", "data", "build", "warm_up", "timing", "evaluate", "reading"]
    assert sum(isinstance(message, BlockDone) for message in messages) == 16
    measurement = measured(ended)
    assert (measurement.startup.import_ns, measurement.startup.first_step_ns) == (7, 1_000_000)
    assert measurement.blocks.steps_per_block == 2
    assert measurement.parameter_count == TINY.parameter_count
    assert measurement.evaluation is not None
    assert measurement.evaluation.accuracy == 0.75
    assert measurement.gemm is not None
    assert (measurement.gemm.size, measurement.gemm.duration_ns) == (1024, 1024**3 // 100)
    assert measurement.host_peak_memory_bytes
    assert measurement.recipe_settings == {"loop": "fake"}
    assert engine.session.closed


def test_the_session_gets_all_the_data_and_its_digest_is_recorded(engine: FakeEngine) -> None:
    ended, _ = answer(engine)
    digest = data_digest(*(generated_data(TINY.data_set, split) for split in ("train", "test")))
    assert measured(ended).data_digest == digest
    data = engine.opened_with
    assert data is not None
    assert (data.train_x.shape, data.test_y.shape) == ((256, 8, 8, 1), (64,))
    assert sorted(data.order) == list(range(256))


def test_without_its_data_a_repeat_is_unavailable(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    job = job_of(workload_named("mnist-cnn"))
    real = job.model_copy(update={"cell": job.cell.model_copy(update={"data": "real"})})
    ended = worker.work(real, lambda message: None, engine.clock)
    assert (failed(ended).kind, failed(ended).phase) == ("unavailable", "data")


def test_an_accuracy_outside_its_band_is_diverged(engine: FakeEngine) -> None:
    """A fake that trains the published epochs and is right three times of four."""
    workload = workload_named("mnist-cnn")
    job = job_of(workload, epochs=workload.epochs, block_seconds=10.0)
    outcome = failed(worker.work(job, lambda message: None, engine.clock))
    assert (outcome.kind, outcome.phase) == ("diverged", "evaluate")
    assert outcome.measurement
    assert outcome.measurement.evaluation


def test_an_accuracy_that_nothing_is_known_of_is_said_to_be_unchecked(engine: FakeEngine) -> None:
    ended, _ = answer(engine, epochs=TINY.epochs)
    assert measured(ended)
    assert [warning.code for warning in ended.warnings] == ["accuracy_unchecked"]


def test_the_environment_names_no_folder(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/home/someone/lib/libjemalloc.so")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("KERAS_HOME", "/home/someone/keras")
    ended, _ = answer(engine)
    recorded = ended.environment
    assert recorded is not None
    assert recorded.settings["OMP_NUM_THREADS"] == "2"
    assert recorded.settings["LD_PRELOAD"] == "libjemalloc.so"
    assert recorded.settings["fake_threads"] == "2"
    assert recorded.libraries == {"blas": "libfake.so.1"}
    assert set(recorded.packages) == {"pytest", "numpy", "bench-agent", "bench-protocol"}
    assert "someone" not in recorded.model_dump_json()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--xla_gpu_cuda_data_dir=/home/me/cuda --b=1", "--xla_gpu_cuda_data_dir=cuda --b=1"),
        ("/home/me/a.so:/home/me/b.so", "a.so:b.so"),
        ("C:\\Users\\me\\x.dll", "C:x.dll"),
        ("/home/me/", ""),
        ("granularity=fine,compact,1,0", "granularity=fine,compact,1,0"),
    ],
)
def test_folders_are_cut(text: str, expected: str) -> None:
    assert environment.without_folders(text) == expected


class ResourceExhaustedError(Exception):
    """As TensorFlow names it."""


def planted(*_: object) -> tuple[float, float]:
    raise RuntimeError("planted")


EXHAUSTED = {"fails_at_step": 600, "error": ResourceExhaustedError("OOM when allocating tensor")}


@pytest.mark.parametrize(
    ("of_engine", "of_session", "kind", "phase", "keeps"),
    [
        ({"load_error": ModuleNotFoundError("no fake")}, {}, "unavailable", "import", False),
        ({"open_error": WrongResult("layers deviate")}, {}, "wrong_result", "build", False),
        ({}, EXHAUSTED, "out_of_memory", "timing", False),
        ({}, {"last_loss": math.nan}, "diverged", "timing", True),
        ({}, {"last_loss": math.inf}, "diverged", "timing", True),
        ({}, {"parameters": 5}, "wrong_result", "build", True),
        ({}, {"place": "GPU:0"}, "wrong_result", "build", True),
        ({}, {"uncounted": 1}, "wrong_result", "timing", True),
        ({}, {"evaluate": planted}, "crashed", "evaluate", True),
    ],
)
def test_a_failure_names_its_phase_and_keeps_earlier_figures(
    engine: FakeEngine,
    of_engine: dict[str, Any],
    of_session: dict[str, Any],
    kind: str,
    phase: str,
    keeps: bool,
) -> None:
    for fake, changes in ((engine, of_engine), (engine.session, of_session)):
        for name, value in changes.items():
            setattr(fake, name, value)
    ended, _ = answer(engine, epochs=1 if phase == "evaluate" else None)
    outcome = failed(ended)
    assert (outcome.kind, outcome.phase) == (kind, phase)
    assert (outcome.measurement is not None) == keeps
    assert (ended.environment is None) == (phase == "import")
    assert engine.session.closed == (phase != "import" and not of_engine)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError(), "out_of_memory"),
        (ResourceExhaustedError("x"), "out_of_memory"),
        (RuntimeError("[metal::malloc] Attempting to allocate ..."), "out_of_memory"),
        (RuntimeError("[malloc_or_wait] Unable to allocate 17 bytes."), "out_of_memory"),
        (RuntimeError("CUDA out of memory"), "out_of_memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you ..."), "out_of_memory"),
        (RuntimeError("MPS backend out of memory (MPS allocated: ...)"), "out_of_memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when ..."), "out_of_memory"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory while ..."), "out_of_memory"),
        (ValueError("malformed"), "crashed"),
        (ImportError("libcuda.so"), "unavailable"),
        (LookupError("a wrong key"), "crashed"),
    ],
)
def test_kinds_of_failure(error: Exception, kind: str) -> None:
    assert kind_of(error, "build") == kind


def test_a_cause_counts() -> None:
    error = RuntimeError("step failed")
    error.__cause__ = MemoryError()
    assert kind_of(error, "timing") == "out_of_memory"


def test_a_failing_matrix_product_is_a_warning(engine: FakeEngine) -> None:
    engine.product_error = RuntimeError("planted")
    ended, _ = answer(engine)
    assert measured(ended).gemm is None
    assert [warning.code for warning in ended.warnings] == ["gemm_failed"]


def test_the_matrix_product_is_the_last_that_a_worker_does(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes all cores. PyTorch and MLX keep its threads, and a small step was timed with one."""
    trained: list[int] = []
    products = engine.products

    def seen(size: int) -> Products:
        trained.append(sum(engine.session.blocks))
        return products(size)

    monkeypatch.setattr(engine, "products", seen)
    assert measured(answer(engine)[0]).gemm is not None
    assert trained[0] == sum(engine.session.blocks)


def test_a_real_probe(tmp_path: Path) -> None:
    probe = run_task(ProbeTask(framework="mlx"), tmp_path / "log")
    assert "cpu" in [device.kind for device in probe.devices]
    assert run_task(ProbeTask(framework="nonsense"), tmp_path / "log").problem


def test_a_worker_ends_with_its_parent() -> None:
    """The grandchild holds a pipe open; the pipe closes when it is gone."""
    reading, writing = os.pipe()
    grandchild = "from bench_agent.worker.parent_watch import die_with; import os, time; "
    grandchild += "die_with(os.getppid()); print(flush=True); time.sleep(600)"
    child = (
        "import subprocess, sys\n"
        f"p = subprocess.Popen([sys.executable, '-c', {grandchild!r}], pass_fds=({writing},),"
        " stdout=subprocess.PIPE)\n"
        "p.stdout.readline(); print(flush=True); p.wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", child], pass_fds=(writing,), stdout=subprocess.PIPE
    ) as parent:
        os.close(writing)
        assert parent.stdout is not None
        parent.stdout.readline()
        parent.send_signal(signal.SIGKILL)
    ready, _, _ = select.select([reading], [], [], 30)
    assert ready
    assert os.read(reading, 1) == b""
    os.close(reading)
