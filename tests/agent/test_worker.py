"""The worker: phases, failures and the answer; then a real one."""

import math
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fakes.engine import FakeClock, FakeEngine, FakeSession
from tests.fakes.workloads import TINY, job_of, variant

from bench_agent.base.messages import Answer, BlockDone, PhaseBegan
from bench_agent.engines.seam import WrongResult
from bench_agent.run.worker_process import run_job, run_probe
from bench_agent.worker import conformance_trace, environment
from bench_agent.worker import main as worker
from bench_agent.worker.failures import kind_of
from bench_protocol.catalogue import workload_named
from bench_protocol.layers import Dense, Dropout, Flatten
from bench_protocol.result import Failed, Measured
from bench_protocol.seeded import data_digest, generated_data
from bench_protocol.witness import Mask, Rewound

LAYERS = (Flatten(), Dropout(rate=1 / 3), Dense(units=10, activation="linear"))
WITH_DROPOUT = variant(TINY, layers=LAYERS)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    clock = FakeClock()
    fake = FakeEngine(clock, FakeSession(clock))
    monkeypatch.setattr(worker, "engine_named", lambda name: fake)
    return fake


def answer(engine: FakeEngine, **timing: Any) -> tuple[Answer, list[Any]]:
    messages: list[Any] = []
    return worker.work(job_of(TINY, **timing), messages.append, engine.clock), messages


def test_a_repeat_goes_through_its_phases(engine: FakeEngine) -> None:
    ended, messages = answer(engine, epochs=2, warm_up_seconds=0.004, block_seconds=0.004)
    phases = [message.phase for message in messages if isinstance(message, PhaseBegan)]
    before = ["import", "data", "build", "warm_up", "timing"]
    assert phases == [*before, "conformance", "evaluate", "conformance"]
    assert sum(isinstance(message, BlockDone) for message in messages) == 16
    assert isinstance(ended.outcome, Measured)
    measurement = ended.outcome.measurement
    assert measurement.startup.import_ns == 7
    assert measurement.startup.first_step_ns == 1_000_000
    assert measurement.blocks.steps_per_block == 2
    assert measurement.parameter_count == TINY.parameter_count
    assert measurement.evaluation is not None
    assert measurement.evaluation.accuracy == 0.75
    assert measurement.gemm is not None
    assert (measurement.gemm.size, measurement.gemm.duration_ns) == (1024, 1024**3 // 100)
    assert measurement.host_peak_memory_bytes
    assert measurement.recipe_settings == {"loop": "fake"}
    assert engine.session.closed


def test_the_timed_session_tells_of_its_training(engine: FakeEngine) -> None:
    """Losses in the warm-up's first calls, the rest at the end. Every tiny weight moved by one."""
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Measured)
    measurement = ended.outcome.measurement
    assert engine.session.blocks[:3] == [1, 3, 4]  # an epoch has 16 steps
    blocks = measurement.blocks
    witness = measurement.witness
    assert witness is not None
    assert (witness.steps, witness.losses, witness.counted_by) == ((1, 4, 8), (0.5,) * 3, "loop")
    calls_after = 10 + len(witness.steps)  # steps after the timing, the rewound session
    assert witness.step_count == sum(engine.session.blocks[:-calls_after])
    assert witness.step_count == 1 + blocks.warm_up_steps + blocks.steps
    sizes = (64 * 16, 16, 16 * 10, 10)
    assert witness.movements == pytest.approx([math.sqrt(size) for size in sizes], rel=1e-6)
    assert witness.masks == ()


def test_steps_that_the_session_did_not_count_are_wrong_result(engine: FakeEngine) -> None:
    engine.session.uncounted = 1
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Failed)
    assert (ended.outcome.kind, ended.outcome.phase) == ("wrong_result", "timing")
    assert ended.outcome.measurement is not None


def test_a_session_that_does_not_repeat_its_losses_is_wrong(engine: FakeEngine) -> None:
    """Later than its warm-up it trains something else."""
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Measured)
    told = ended.outcome.measurement.witness
    assert told is not None
    assert told.rewound == Rewound(start_loss=0.5, losses=told.losses)
    assert engine.session.rewinds == 1
    engine.session.evaluated = 0.6
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Failed)
    assert (ended.outcome.kind, ended.outcome.phase) == ("wrong_result", "timing")


def test_a_dynamic_loss_scale_may_leave_out_updates(engine: FakeEngine) -> None:
    engine.session.settings = {"loss_scale": "dynamic"}
    engine.session.uncounted = 2
    assert isinstance(answer(engine)[0].outcome, Measured)
    engine.session.uncounted = -1
    assert isinstance(answer(engine)[0].outcome, Failed)


@pytest.mark.parametrize(
    ("after", "next_after", "zeros", "differ"),
    [
        ([0, 1.5, 0, 1.5], [1.5, 0, 0, 1.5], 1 / 3, True),
        ([0, 1.5, 0, 1.5], [0, 1.5, 0, 1.5], 1 / 3, False),
        ([1.5, 1.5, 0, 1.5], [1.5, 1.5, 0, 1.5], 0.0, False),
    ],
)
def test_masks_are_read_from_what_went_in_and_came_out(
    engine: FakeEngine, after: list[float], next_after: list[float], zeros: float, differ: bool
) -> None:
    """The third value is zero already, so no mask shows there."""
    before = np.array([1, 1, 0, 1], np.float32)
    engine.session.dropped = [
        [(before, np.array(values, np.float32))] for values in (after, next_after)
    ]
    ended = worker.work(job_of(WITH_DROPOUT), lambda message: None, engine.clock)
    assert isinstance(ended.outcome, Measured)
    witness = ended.outcome.measurement.witness
    assert witness is not None
    assert witness.masks == (Mask(zeros=zeros, differ=differ),)


def test_dropout_that_does_not_scale_is_wrong(engine: FakeEngine) -> None:
    before, after = np.ones(4, np.float32), np.array([1, 0, 1, 0], np.float32)
    engine.session.dropped = [[(before, after)], [(before, after)]]
    ended = worker.work(job_of(WITH_DROPOUT), lambda message: None, engine.clock)
    assert isinstance(ended.outcome, Failed)
    assert (ended.outcome.kind, ended.outcome.phase) == ("wrong_result", "conformance")


def test_a_step_that_repeats_its_masks_is_seen(engine: FakeEngine) -> None:
    """The fake's loss is always the same."""
    cell = job_of(TINY).cell
    assert conformance_trace.masks_change(engine, TINY, cell)  # there is no dropout
    assert not conformance_trace.masks_change(engine, WITH_DROPOUT, cell)
    losses = iter((0.5, 0.51, 0.49, 0.52, 0.5))
    engine.session.loss = lambda: next(losses)  # type: ignore[method-assign]
    assert conformance_trace.masks_change(engine, WITH_DROPOUT, cell)


@pytest.mark.parametrize("spread", [5e-3, 3e-4])
def test_honest_masks_are_not_taken_for_repeated_ones(spread: float) -> None:
    """Relative spreads of the loss: of fashion-mlp, and of cifar100-vgg16, the smallest."""
    losses = np.random.default_rng(1).normal(4.6, 4.6 * spread, (10_000, 5))
    assert sum(not conformance_trace.losses_change(list(row)) for row in losses) <= 5


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param([4.6, 4.6, 4.6, 4.6, 4.6], id="one mask"),
        pytest.param([4.6, 4.6, 4.7, 4.7, 4.5], id="a mask for two steps"),
        pytest.param([4.6, 4.6000005, 4.6, 4.6000005, 4.6], id="rounding"),
    ],
)
def test_repeated_masks_are_seen(losses: list[float]) -> None:
    assert not conformance_trace.losses_change(losses)


def test_a_weight_that_is_no_number_moved_by_nothing_known(engine: FakeEngine) -> None:
    engine.session.weights = [np.full(1, np.nan, np.float32)] * 4
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Measured)
    witness = ended.outcome.measurement.witness
    assert witness is not None
    assert witness.movements == (None,) * 4


def test_the_session_gets_all_the_data(engine: FakeEngine) -> None:
    answer(engine)
    data = engine.opened_with
    assert data is not None
    assert data.train_x.shape == (256, 8, 8, 1)
    assert data.test_y.shape == (64,)
    assert sorted(data.order) == list(range(256))


def test_the_digest_of_the_data_is_recorded(engine: FakeEngine) -> None:
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Measured)
    wanted = data_digest(*(generated_data(TINY.data_set, split) for split in ("train", "test")))
    assert ended.outcome.measurement.data_digest == wanted


def test_without_its_data_a_repeat_is_unavailable(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    job = job_of(workload_named("mnist-cnn"))
    real = job.model_copy(update={"cell": job.cell.model_copy(update={"data": "real"})})
    ended = worker.work(real, lambda message: None, engine.clock)
    assert isinstance(ended.outcome, Failed)
    assert (ended.outcome.kind, ended.outcome.phase) == ("unavailable", "data")


def test_an_accuracy_outside_its_band_is_diverged(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake that trains the published epochs and is right three times of four."""
    monkeypatch.setattr(
        conformance_trace, "has_reference", lambda workload: False
    )  # a fake conforms to none
    workload = workload_named("mnist-cnn")
    job = job_of(workload, epochs=workload.epochs, block_seconds=10.0)
    ended = worker.work(job, lambda message: None, engine.clock)
    assert isinstance(ended.outcome, Failed)
    assert (ended.outcome.kind, ended.outcome.phase) == ("diverged", "evaluate")
    assert ended.outcome.measurement is not None
    assert ended.outcome.measurement.evaluation is not None


def test_an_accuracy_that_nothing_is_known_of_is_said_to_be_unchecked(engine: FakeEngine) -> None:
    ended, _ = answer(engine, epochs=TINY.epochs)
    assert isinstance(ended.outcome, Measured)
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


def test_a_failing_import_is_unavailable(engine: FakeEngine) -> None:
    engine.load_error = ModuleNotFoundError("No module named 'fake'")
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Failed)
    assert (ended.outcome.kind, ended.outcome.phase) == ("unavailable", "import")
    assert ended.outcome.exception_class == "ModuleNotFoundError"
    assert ended.environment is None


def test_a_wrong_device_is_wrong_result(engine: FakeEngine) -> None:
    engine.open_error = WrongResult("dense layers deviate")
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Failed)
    assert (ended.outcome.kind, ended.outcome.phase) == ("wrong_result", "build")
    assert ended.environment is not None


def test_memory_that_runs_out_while_timing(engine: FakeEngine) -> None:
    engine.session.fails_at_step = 600
    engine.session.error = ResourceExhaustedError("OOM when allocating tensor")
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Failed)
    assert (ended.outcome.kind, ended.outcome.phase) == ("out_of_memory", "timing")
    assert engine.session.closed


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


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_diverged_and_keeps_the_figures(
    engine: FakeEngine, loss: float
) -> None:
    engine.session.last_loss = loss
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Failed)
    assert ended.outcome.kind == "diverged"
    assert ended.outcome.measurement is not None
    assert ended.outcome.measurement.last_loss is None


@pytest.mark.parametrize("change", [{"parameters": 5}, {"place": "GPU:0"}])
def test_another_model_or_device_is_wrong_result(
    engine: FakeEngine, change: dict[str, Any]
) -> None:
    for name, value in change.items():
        setattr(engine.session, name, value)
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Failed)
    assert ended.outcome.kind == "wrong_result"
    assert ended.outcome.measurement is not None


def test_an_evaluation_that_fails_keeps_the_figures(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: FakeSession) -> tuple[float, float]:
        raise RuntimeError("planted")

    monkeypatch.setattr(FakeSession, "evaluate", fail)
    ended, _ = answer(engine, epochs=1)
    assert isinstance(ended.outcome, Failed)
    assert (ended.outcome.kind, ended.outcome.phase) == ("crashed", "evaluate")
    assert ended.outcome.measurement is not None


def test_a_failing_matrix_product_is_a_warning(engine: FakeEngine) -> None:
    engine.product_error = RuntimeError("planted")
    ended, _ = answer(engine)
    assert isinstance(ended.outcome, Measured)
    assert ended.outcome.measurement.gemm is None
    assert [warning.code for warning in ended.warnings] == ["gemm_failed"]


def test_a_real_worker(tmp_path: Path) -> None:
    job = job_of(TINY, "mlx", warm_up_seconds=0.02, block_seconds=0.01, budget_seconds=0.1)
    messages: list[Any] = []
    ended = run_job(job, tmp_path / "log", listener=messages.append)
    assert isinstance(ended.outcome, Measured), (tmp_path / "log").read_text()
    assert ended.environment is not None
    assert ended.environment.packages["mlx"]
    assert any(isinstance(message, BlockDone) for message in messages)


def test_a_real_probe(tmp_path: Path) -> None:
    probe = run_probe("mlx", tmp_path / "log")
    assert "cpu" in [device.kind for device in probe.devices]
    assert run_probe("nonsense", tmp_path / "log").problem


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
