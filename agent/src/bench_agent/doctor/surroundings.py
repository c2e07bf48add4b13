"""Facts of this machine for doctor's checks. Each is read on first use."""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from bench_protocol.catalogue.matrix import Device

from .. import machine
from ..base.errors import HomeProblem, UsageProblem
from ..base.home import Home
from ..base.messages import Probe
from ..machine import nesting, sensors
from ..machine.sensors import Governor, Load, Power
from ..machine.text import text_or_none
from ..run import interpreters
from ..run.energy import MeterProblem, meter_for
from ..run.interpreters import Interpreter
from ..run.probe import Answers, merged, probe_each
from ..run.self_test import SelfTests
from . import diagnose
from .deep import Tested, to_test
from .frameworks import FrameworkProbe
from .network import ServerAnswer, offset_seconds
from .nvidia import INSTALL_DRIVER, Nvidia
from .software import Software, software_of
from .storage import DataSet, Folder, Secret
from .versions import release

SERVER_TIMEOUT_SECONDS = 10.0
# Bounds of devices do not depend on which machine it is.
NO_HASH = "0" * 64


class Surroundings:
    """This machine for doctor's checks. Reading it leaves no files except logs of workers, and the
    outcomes of self-tests.

    Args:
        home: the agent's folder, which may be unusable.
        server: address to check, or None.
        deep: run self-tests.
        say: shows a line to the user while they run.
    """

    def __init__(
        self,
        home: Home,
        server: str | None = None,
        environ: Mapping[str, str] = os.environ,
        *,
        deep: bool = False,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.deep = deep
        self.say = say
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
    def interpreters(self) -> tuple[Interpreter, ...]:
        """The agent's own interpreter and the added ones, with all their packages."""
        try:
            return interpreters.every(self.home, packages=True)
        except HomeProblem:  # one of ``environments_problem``
            return (interpreters.own(packages=True),)

    @property
    def environments_problem(self) -> str | None:
        """Why the list of added interpreters cannot be read, or None."""
        try:
            interpreters.added(self.home)
        except HomeProblem as problem:
            return str(problem)
        return None

    @cached_property
    def answers(self) -> Answers:
        """Each interpreter's frameworks. Frameworks that none has are not started."""
        return probe_each(self.logs, self.interpreters)

    @cached_property
    def frameworks(self) -> dict[str, FrameworkProbe]:
        """Each framework over all interpreters."""
        by_path = {interpreter.path: interpreter for interpreter in self.interpreters}
        return {
            name: seen(probe, self.answers, name, by_path)
            for name, probe in merged(self.answers).items()
        }

    @cached_property
    def self_tests(self) -> tuple[Tested, ...] | None:
        """A self-test of every framework, device and precision now; None unless ``deep``."""
        if not self.deep:
            return None
        # Where the agent's folder cannot be used nothing is kept.
        home = self.home if self.folder.problem is None else Home(self.logs)
        tests = SelfTests(home, machine.make_machine(self.facts, NO_HASH), self.say)
        software = {each.path: software_of(each) for each in self.interpreters}
        return tuple(
            Tested(
                place,
                precision,
                tests.outcome(place, precision, again=True),
                software[place.python],
            )
            for place, precision in to_test(merged(self.answers))
        )

    def software(self, framework: str) -> Software:
        """The packages of the interpreter that a framework's workers start under.

        Nothing is started where only one interpreter can have the framework.
        """
        having = [each for each in self.interpreters if each.has(framework)]
        if len(having) < 2:
            return software_of(next(iter(having), self.interpreters[0]))
        return self.frameworks[framework].software

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
    def metal_probe(self) -> tuple[str | None, str | None, bool]:
        """Form of the layers in a short training on Metal, its problem, if any, and whether the
        plug-in may fuse operations."""
        tensorflow = self.frameworks.get("tensorflow")
        if tensorflow is None or "metal" not in tensorflow.devices:
            return None, None, True
        return diagnose.short_training(
            "tensorflow", "metal", self.logs, tensorflow.software.pip.python
        )

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


def seen(
    probe: Probe,
    answers: Answers,
    framework: str,
    by_path: Mapping[str | None, Interpreter],
) -> FrameworkProbe:
    """Convert the answers of one framework for the checks.

    Args:
        probe: all devices of the framework, each with its interpreter.
        by_path: the interpreters that were asked.
    """
    having = [path for path, name in answers if name == framework]
    gpus = (device.python for device in probe.devices if device.kind != "cpu")
    path = next(gpus, having[0] if having else None)
    answer = answers.get((path, framework), probe)
    environment = answer.environment
    return FrameworkProbe(
        installed=bool(having),
        devices=tuple(dict.fromkeys(device.kind for device in probe.devices)),
        version=next(iter(environment.packages.values()), None) if environment else None,
        libraries=environment.libraries if environment else None,
        problem=probe.problem,
        software=software_of(by_path[path]),
    )


def ask_server(url: str) -> ServerAnswer:
    """Send one request, and compute the difference of the clocks."""
    import httpx

    from ..remote.connection import trusted

    before = datetime.now(UTC)
    try:
        answer = httpx.get(
            f"{url.rstrip('/')}/healthz", timeout=SERVER_TIMEOUT_SECONDS, verify=trusted()
        )
    except (httpx.HTTPError, httpx.InvalidURL, UsageProblem) as error:
        return ServerAnswer(url, problem=text_or_none(str(error)) or type(error).__name__)
    offset = offset_seconds(answer.headers.get("Date"), before, datetime.now(UTC))
    return ServerAnswer(url, status=answer.status_code, offset_seconds=offset)
