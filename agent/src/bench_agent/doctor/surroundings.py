"""Facts of this machine for doctor's checks. Each is read on first use."""

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from bench_protocol.matrix import Device

from .. import engines, machine
from ..base.home import Home
from ..base.messages import Probe
from ..machine import nesting, sensors
from ..machine.sensors import Governor, Load, Power
from ..machine.text import text_or_none
from ..run.energy import MeterProblem, meter_for
from ..run.probe import probe_all
from . import diagnose
from .frameworks import FrameworkProbe
from .network import ServerAnswer, offset_seconds
from .nvidia import INSTALL_DRIVER, Nvidia
from .storage import DataSet, Folder, Secret
from .versions import release

SERVER_TIMEOUT_SECONDS = 10.0


class Surroundings:
    """This machine for doctor's checks. Reading it leaves no files except the probes' logs.

    Args:
        home: the agent's folder, which may be unusable.
        server: address to check, or None.
    """

    def __init__(
        self, home: Home, server: str | None = None, environ: Mapping[str, str] = os.environ
    ) -> None:
        self.home = home
        self.server = server
        self.environ = environ
        self.system = platform.system()
        self.architecture = platform.machine()
        self.python = (sys.version_info.major, sys.version_info.minor)
        self.macos = release(platform.mac_ver()[0])
        kind, version = platform.libc_ver()
        self.glibc = release(version) if kind == "glibc" else ()

    @cached_property
    def facts(self) -> machine.MachineFacts:
        return machine.read_facts()

    @property
    def wsl(self) -> int | None:
        return nesting.wsl(Path("/")) if self.system == "Linux" else None

    @property
    def apple_silicon(self) -> bool:
        return self.system == "Darwin" and self.architecture == "arm64"

    @cached_property
    def packages(self) -> dict[str, str]:
        """Version of every installed distribution, by its normalised name."""
        versions: dict[str, str] = {}
        for item in importlib.metadata.distributions():
            name = item.metadata["Name"] if item.metadata else None
            if name:
                # Python imports the first one on the path.
                versions.setdefault(name.lower().replace("_", "-"), item.version or "")
        return versions

    @cached_property
    def probes(self) -> dict[str, Probe]:
        """Each framework's answer, from its own process; frameworks that are not installed are not
        started."""
        names = [name for name in engines.names() if is_installed(engine_module(name))]
        answers = probe_all(self.logs, tuple(names)) if names else {}
        absent = Probe(devices=(), environment=None, problem="not installed")
        return {name: answers.get(name, absent) for name in engines.names()}

    @cached_property
    def frameworks(self) -> dict[str, FrameworkProbe]:
        return {name: seen(name, probe) for name, probe in self.probes.items()}

    @cached_property
    def logs(self) -> Path:
        """Folder of the probes' logs: a temporary one if the agent's cannot be written."""
        if self.folder.problem is None:
            return self.home.logs
        return Path(tempfile.mkdtemp(prefix="trainmark-doctor-"))

    @cached_property
    def folder(self) -> Folder:
        return diagnose.folder(self.home.root, self.environ)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return diagnose.secrets(self.home)

    @property
    def free_bytes(self) -> int | None:
        return diagnose.free_bytes(self.home.root)

    @property
    def log_bytes(self) -> int:
        return diagnose.tree_bytes(self.home.logs)

    @cached_property
    def data_sets(self) -> tuple[DataSet, ...]:
        return diagnose.data_sets(self.environ)

    @property
    def reachable(self) -> dict[str, bool]:
        return {item.name: diagnose.answers(item.url) for item in self.data_sets if item.missing}

    @cached_property
    def metal_probe(self) -> tuple[str | None, str | None]:
        """Form of the layers in a short training on Metal, and its problem, if any."""
        tensorflow = self.frameworks.get("tensorflow")
        if tensorflow is None or "metal" not in tensorflow.devices:
            return None, None
        return diagnose.short_training("tensorflow", "metal", self.logs)

    @cached_property
    def nvidia(self) -> Nvidia:
        return diagnose.nvidia(self.facts.gpus)

    @property
    def driver_tools(self) -> tuple[str, ...]:
        return tuple(tool for tool in INSTALL_DRIVER if shutil.which(tool))

    @property
    def has_compiler(self) -> bool:
        return shutil.which("g++") is not None

    @cached_property
    def power(self) -> Power:
        return sensors.power(self.system)

    @property
    def governor(self) -> Governor | None:
        return sensors.governor()

    @property
    def thermal(self) -> tuple[str | None, int | None]:
        mac = self.system == "Darwin"
        return (sensors.thermal_pressure(), None) if mac else (None, sensors.throttled_meanwhile())

    @cached_property
    def energy(self) -> tuple[str | None, str | None]:
        """Energy source of the GPU (or of the processor if there is none), or why there is none."""
        gpu = next(iter(self.facts.gpus), None)
        device = Device(kind=gpu.kind, index=gpu.index) if gpu else Device(kind="cpu")
        try:
            meter = meter_for(device, self.system)
        except MeterProblem as problem:
            return None, str(problem)
        meter.close()
        return meter.source, None

    @cached_property
    def load(self) -> Load:
        return sensors.load(self.system, self.facts.cpu.available_cores or os.cpu_count() or 1)

    @cached_property
    def answer(self) -> ServerAnswer | None:
        return ask_server(self.server) if self.server else None


def seen(name: str, probe: Probe) -> FrameworkProbe:
    """Convert a worker's answer for the checks."""
    environment = probe.environment
    return FrameworkProbe(
        installed=is_installed(engine_module(name)),
        devices=tuple(dict.fromkeys(device.kind for device in probe.devices)),
        version=next(iter(environment.packages.values()), None) if environment else None,
        libraries=environment.libraries if environment else None,
        problem=probe.problem,
    )


def engine_module(name: str) -> str:
    """The first module that a framework's import loads."""
    return engines.engine_named(name).import_name


def is_installed(name: str) -> bool:
    """Whether a module is installed. A failing import of its parent counts as no."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def ask_server(url: str) -> ServerAnswer:
    """Send one request, and compute the difference of the clocks."""
    import httpx

    before = datetime.now(UTC)
    try:
        answer = httpx.get(f"{url.rstrip('/')}/healthz", timeout=SERVER_TIMEOUT_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return ServerAnswer(url, problem=text_or_none(str(error)) or type(error).__name__)
    offset = offset_seconds(answer.headers.get("Date"), before, datetime.now(UTC))
    return ServerAnswer(url, status=answer.status_code, offset_seconds=offset)
