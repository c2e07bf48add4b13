"""Read folders, keys, data sets and devices for doctor. Absent ones are no error."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import platformdirs
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell, Device, DeviceKind
from bench_protocol.payload.machine import Gpu
from bench_protocol.payload.result import Failed
from bench_protocol.real_data import files
from bench_protocol.real_data.manifest import MANIFEST

from ..base.home import Home
from ..base.messages import Job, Timing
from ..data import sources
from ..machine import nvidia as driver
from ..machine.text import file_text
from ..run.worker_process import Limits, run_job, worker_command
from .apple import SWITCH
from .nvidia import Nvidia
from .storage import DataSet, Folder, Secret

HOST_TIMEOUT_SECONDS = 5.0
MOST_LOG_FILES = 20_000
PROBE_WORKLOAD = "mnist-cnn"


def folder(path: Path, environ: Mapping[str, str]) -> Folder:
    """Test the agent's folder by writing to it; new files and folders are removed again."""
    problem = why_not_writable(path)
    elsewhere = None
    if problem is not None:
        user = environ.get("USER") or str(os.getuid() if hasattr(os, "getuid") else "me")
        candidates = (
            platformdirs.user_data_path("trainmark"),
            Path(environ.get("HOME") or "/nonexistent") / "trainmark",
            Path(tempfile.gettempdir()) / f"trainmark-{user}",
        )
        good = (place for place in candidates if place != path and not why_not_writable(place))
        elsewhere = next(good, None)
    return Folder(
        path=path,
        problem=problem,
        exists=_is_dir(path),
        owned=_owned(path),
        elsewhere=elsewhere,
    )


def why_not_writable(path: Path) -> str | None:
    """Why a file cannot be created in a folder, or None. A missing folder is created and removed
    again."""
    try:
        made = [level for level in (path, *path.parents) if not level.exists()]
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path) as file:
                file.write(b"doctor")
        finally:
            for level in made:
                with suppress(OSError):
                    level.rmdir()
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def secrets(home: Home) -> tuple[Secret, ...]:
    """The key, the salt and their folder, those that exist."""
    entries = []
    for path in (home.key, home.salt, home.key.parent):
        try:
            mode = path.stat().st_mode & 0o777
        except OSError:
            continue
        problem = _key_problem(path) if path == home.key else None
        entries.append(Secret(path, mode, _owned(path), problem, is_folder=path == home.key.parent))
    return tuple(entries)


def free_bytes(path: Path) -> int | None:
    """Free bytes on the disk of a folder that exists or will be created."""
    for level in (path, *path.parents):
        with suppress(OSError):
            return shutil.disk_usage(level).free
    return None


def tree_bytes(path: Path) -> int:
    """Size of all files below a folder."""
    total = 0
    for number, item in enumerate(path.rglob("*") if _is_dir(path) else ()):
        if number == MOST_LOG_FILES:
            break
        with suppress(OSError):
            total += item.lstat().st_size
    return total


def data_sets(environ: Mapping[str, str]) -> tuple[DataSet, ...]:
    """The catalogue's data sets, from the data folder or Keras' cache."""
    places = sources.folders(environ)
    return tuple(
        DataSet(
            name=real.name,
            missing=tuple(file.path for file in files.missing(real, places)),
            folder=places[0],
            url=real.files[0].mirrors[0],
        )
        for real in MANIFEST
    )


def answers(url: str) -> bool:
    """Whether a host answers. Sends one request without data."""
    try:
        return httpx.head(url, timeout=HOST_TIMEOUT_SECONDS, follow_redirects=True).is_success
    except (httpx.HTTPError, httpx.InvalidURL):
        return False


def short_training(
    framework: str, kind: DeviceKind, logs: Path, python: str | None = None
) -> tuple[str | None, str | None, bool]:
    """Train a small model for a second. Return the form of its layers, the problem if it failed,
    and whether Apple's plug-in may fuse operations.

    Args:
        python: the worker's interpreter; None for the agent's own.
    """
    workload = workload_named(PROBE_WORKLOAD)
    cell = Cell(
        workload=workload.name,
        workload_digest=workload.digest,
        framework=framework,
        device=Device(kind=kind),
        recipe="naive",
        batch_size=workload.batch_size,
        precision="float32",
        data="generated",
    )
    timing = Timing(warm_up_seconds=0.1, block_seconds=0.1, min_blocks=2, budget_seconds=1.0)
    job = Job(workload=workload, cell=cell, seed="0" * 32, timing=timing)
    limits = Limits(silence_seconds=180, total_seconds=300)
    log = logs / "probes" / f"{framework}-{kind}.log"
    answer = run_job(job, log, limits=limits, command=worker_command(python))
    outcome = answer.outcome
    if isinstance(outcome, Failed):
        return None, f"{outcome.kind.replace('_', ' ')} in phase {outcome.phase}", True
    settings = answer.environment.settings if answer.environment else {}
    return outcome.measurement.layers, None, settings.get(SWITCH) != "1"


def nvidia(gpus: Sequence[Gpu]) -> Nvidia:
    """The driver, and the GPUs that the frameworks may see."""
    version = driver.driver_version()
    capabilities = tuple(gpu.compute_capability for gpu in gpus if gpu.compute_capability)
    return Nvidia(
        on_bus=any(_nvidia_graphics(Path("/sys/bus/pci/devices"))),
        kernel_driver=bool(file_text("/proc/driver/nvidia/version")),
        driver=version,
        problem=None if version else driver.why_no_driver(),
        capabilities=capabilities,
        hidden=version is not None and not gpus,
    )


def _nvidia_graphics(devices: Path) -> Iterator[bool]:
    """For each device on the bus: whether it is an NVIDIA display or 3D controller."""
    for device in sorted(devices.glob("*")) if _is_dir(devices) else ():
        vendor = file_text(device / "vendor").strip()
        yield vendor == "0x10de" and file_text(device / "class").startswith("0x03")


def _key_problem(path: Path) -> str | None:
    try:
        loaded = load_pem_private_key(path.read_bytes(), password=None)
    except OSError:
        return None  # mode or owner is the reason
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "is not a PEM private key"
    return None if isinstance(loaded, Ed25519PrivateKey) else "is not an Ed25519 key"


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _owned(path: Path) -> bool:
    if not hasattr(os, "getuid"):
        return True
    try:
        return path.stat().st_uid == os.getuid()
    except OSError:
        return False
