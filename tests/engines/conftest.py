"""Sessions of real engines on tiny copies of the workloads, in this process."""

import gc
import importlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest
from tests.fakes.workloads import cell_of, variant

from bench_agent import engines
from bench_agent.engines import engine_named
from bench_agent.engines.seam import Data, Engine, HasForms, Session
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.matrix import Precision, Recipe
from bench_protocol.catalogue.workloads import Workload

Opener = Callable[..., Session]

# PyTorch's usual wheel brings Triton, whose import crashes in a process that has TensorFlow already
# (Triton 3.7.1, TensorFlow 2.21.0). Only tests have both in one process.
if find_spec("torch"):
    importlib.import_module("torch._dynamo")


SMOKE = {"framework": ("mlx",), "name": ("mnist-dense", "mnist-cnn")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The short form of make test trains two workloads in one framework."""
    for item in items:
        chosen = getattr(item, "callspec", None)
        if (
            item.path.name == "test_reading.py"
            and chosen is not None
            and all(chosen.params.get(name) in values for name, values in SMOKE.items())
        ):
            item.add_marker("smoke")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """A test that imports a framework is left out where that framework is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        for framework in engines.names():
            if missing in engine_named(framework).distributions:
                installed(framework)
        raise


@pytest.fixture(scope="session", autouse=True)
def _jax_on_a_cpu(tmp_path_factory: pytest.TempPathFactory) -> None:
    """On the CPU as every session here; compiling again would take 40 % of the processor time."""
    if not find_spec("jax"):
        return
    import jax

    jax.config.update("jax_platforms", "cpu")
    kept = tmp_path_factory.getbasetemp().parent / "compiled-by-jax"
    jax.config.update("jax_compilation_cache_dir", str(kept))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def installed(framework: str) -> Engine:
    engine = engine_named(framework)
    if not find_spec(engine.import_name.partition(".")[0]):
        pytest.skip(f"{framework} is not installed: make frameworks")
    return engine


def tiny_data(workload: Workload) -> Data:
    train_x, train_y = seeded.generated_data(workload.data_set, "train")
    test_x, test_y = seeded.generated_data(workload.data_set, "test")
    order = seeded.order(workload.data_set.train_samples, 0)
    return Data(train_x, train_y, test_x, test_y, order)


@contextmanager
def form_of(framework: str, form: str) -> Iterator[Engine]:
    engine = installed(framework)
    assert isinstance(engine, HasForms)
    plain, engine.form = engine.form, form
    try:
        yield engine
    finally:
        engine.form = plain


def without_dropout(workload: Workload) -> Workload:
    layers = tuple(layer for layer in workload.layers if not isinstance(layer, Dropout))
    return variant(workload, layers=layers)


def losses(session: Session, steps: int) -> list[float]:
    values = []
    for _ in range(steps):
        session.train_block(1)
        session.sync()
        values.append(session.loss())
    return values


def evaluated(session: Session, workload: Workload) -> tuple[float, float]:
    return session.evaluate(*seeded.generated_data(workload.data_set, "test"))


@pytest.fixture(autouse=True)
def left_alone() -> None:
    """What frameworks keep of earlier tests is not searched again whenever a session ends."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def opened() -> Iterator[Opener]:
    sessions = []

    def open_session(
        framework: str,
        workload: Workload,
        recipe: Recipe = "naive",
        batch_size: int | None = None,
        precision: Precision = "float32",
    ) -> Session:
        engine = installed(framework)
        cell = cell_of(workload, framework, recipe, batch_size, precision)
        engine.load(workload, cell)
        weights = seeded.initial_weights(workload)
        session = engine.open(workload, cell, weights, tiny_data(workload))
        sessions.append(session)
        return session

    yield open_session
    for session in sessions:
        session.close()
