"""Settings that all tests share."""

import fcntl
import os
import signal
import sqlite3  # noqa: F401 - before TensorFlow, which brings a SQLite without ln()
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.left_out"]

# A busy machine is no defect: no time limit on an example or on generating it.
settings.register_profile("trainmark", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trainmark")

# Tests run side by side: threads of one framework that wait for another's core are extremely slow.
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")

# As in a shell where the virtual environment is active: programs are called by their names.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


# The folder of a test says what it costs: it trains with a framework, starts processes, or opens a
# browser. tests/server/conftest.py marks the tests that use PostgreSQL.
COSTS = {"engines": "engine", "system": "process", "pages": "browser"}


def pytest_configure() -> None:
    """SIGTERM ends the tests as Ctrl-C does: what fixtures have started is stopped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by cost, and run the longest first, so that no core is idle at the end."""
    for item in items:
        if cost := COSTS.get(_folder(item)):
            item.add_marker(cost)
    items.sort(key=lambda item: _folder(item) != "system")


def _folder(item: pytest.Item) -> str:
    """The folder in tests/, whatever the folders above it are called."""
    return item.path.relative_to(Path(__file__).parent).parts[0]


@pytest.fixture(scope="session", autouse=True)
def default_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keras, Chromium and rustup write default folders too. Caches stay the user's."""
    before = _hidden_in_home()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("BENCH_")]:
            patch.delenv(name)
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "KERAS_HOME", "RUSTUP_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield
    made = _hidden_in_home() - before - {".cache", ".nv"}
    assert not made, f"tests left {sorted(made)} in {Path.home()}: give their program a folder"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from bench_server.db import migrate  # here: most tests need no server
    from bench_server.db.store import Store

    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    store = Store(f"sqlite:///{path}")
    migrate.migrate(store.engine)
    store.close()
    return path


@pytest.fixture(scope="session")
def fleet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The invented fleet of two workloads: database and keys, made once for all processes of the
    tests. Who writes takes a copy."""
    from tests.fakes import fleet

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "invented-fleet"
    folder.mkdir(exist_ok=True)
    with (folder / "made").open("a+") as made:
        fcntl.flock(made, fcntl.LOCK_EX)
        if not made.tell():
            fleet.make(folder, fleet.TWO)
            made.write("yes")
    return folder


def _hidden_in_home() -> set[str]:
    return {path.name for path in Path.home().glob(".*")}
