"""The table of all checks, and the facts of this machine that they read."""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.hardware import emulated

from .. import machine
from ..base import names
from ..base.errors import HomeProblem, UsageProblem
from ..base.home import Home
from ..base.messages import Probe
from ..machine import macos, nesting, sensors
from ..remote.connection import token_for
from ..remote.http_client import open_http
from ..run import interpreters, kept_probes
from ..run.energy.meter import MeterProblem
from ..run.interpreters import Interpreter
from ..run.probe import Answers, merged, probe_each
from ..run.self_test import SelfTests
from ..run.timed_part import meter_for
from . import frameworks, gpu, storage, system
from .finding import Finding
from .frameworks import FrameworkProbe, Software, Tested, release, software_of
from .gpu import Nvidia

# Bounds of devices do not depend on which machine it is.
NO_HASH = "0" * 64


class Surroundings:
    """This machine for doctor's checks; each fact is read on first use. Reading it leaves no files
    except logs of workers, and the answers of frameworks and self-tests.

    ``deep``: run self-tests. ``say``: shows a line to the user while they run.
    """

    def __init__(
        self, home: Home, *, deep: bool = False, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self.deep = deep
        self.say = say
        self.home = home
        self.environ = os.environ
        self.system = platform.system()
        self.architecture = platform.machine()
        self.python = (sys.version_info.major, sys.version_info.minor)
        self.macos = release(macos.version() if self.system == "Darwin" else "")
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
    def unwritable(self) -> str | None:
        """Why the agent's folder cannot be written, or None."""
        return storage.why_not_writable(self.home.root)

    @cached_property
    def logs(self) -> Path:
        """Folder of the probes' logs: a temporary one if the agent's cannot be written."""
        if self.unwritable is None:
            return self.home.logs
        return Path(tempfile.mkdtemp(prefix="trainmark-doctor-"))

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

    @property
    def connections_problem(self) -> str | None:
        """Why no server can be asked from here, or None."""
        try:
            open_http().close()
            token_for("", self.environ, named=True)
        except UsageProblem as problem:
            return str(problem)
        return None

    @cached_property
    def answers(self) -> Answers:
        """Each interpreter's frameworks. Frameworks that none has are not started."""
        answers = probe_each(self.logs, self.interpreters)
        kept_probes.keep(self.home, self.interpreters, answers, datetime.now(UTC))
        return answers

    @cached_property
    def frameworks(self) -> dict[str, FrameworkProbe]:
        return {name: self._seen(name, probe) for name, probe in merged(self.answers).items()}

    def _seen(self, framework: str, probe: Probe) -> FrameworkProbe:
        having = [path for path, name in self.answers if name == framework]
        gpus = (device.python for device in probe.devices if device.kind != "cpu")
        path = next(gpus, having[0] if having else None)
        environment = self.answers.get((path, framework), probe).environment
        return FrameworkProbe(
            installed=bool(having),
            devices=tuple(dict.fromkeys(device.kind for device in probe.devices)),
            version=next(iter(environment.packages.values()), None) if environment else None,
            blas=environment.libraries.get("blas") if environment else None,
            problem=probe.problem,
            software=next(software_of(each) for each in self.interpreters if each.path == path),
        )

    def software(self, framework: str) -> Software:
        """The packages of the interpreter that a framework's workers start under. Nothing is
        started where only one interpreter can have the framework."""
        having = [each for each in self.interpreters if each.has(framework)]
        if len(having) < 2:
            return software_of(next(iter(having), self.interpreters[0]))
        return self.frameworks[framework].software

    @cached_property
    def self_tests(self) -> tuple[Tested, ...] | None:
        """A self-test of every framework, device and precision now; None unless ``deep``."""
        if not self.deep:
            return None
        # Outcomes are not stored if the agent's folder cannot be used.
        home = self.home if self.unwritable is None else Home(self.logs)
        tests = SelfTests(home, machine.make_machine(self.facts, NO_HASH), self.say)
        software = {each.path: software_of(each) for each in self.interpreters}
        return tuple(
            Tested(
                place,
                precision,
                tests.outcome(place, precision, again=True),
                software[place.python],
            )
            for place, precision in frameworks.to_test(merged(self.answers))
        )

    @cached_property
    def nvidia(self) -> Nvidia:
        return gpu.read_nvidia(self.facts.gpus)

    @property
    def energy(self) -> tuple[str | None, str | None]:
        """Energy source of the GPU (or of the processor if there is none), or why there is none."""
        first = next(iter(self.facts.gpus), None)
        device = Device(kind=first.kind, index=first.index) if first else Device(kind="cpu")
        try:
            meter = meter_for(device, self.system)
        except MeterProblem as problem:
            return None, str(problem)
        meter.close()
        return meter.source, None


# The functions that run each check, by its id.
CHECKS: Mapping[str, Callable[[Surroundings], Iterable[Finding]]] = {
    "system": lambda s: system.check_system(s.system, s.wsl, s.macos),
    "python": lambda s: system.check_python(s.python, s.system),
    "architecture": lambda s: system.check_architecture(
        s.system, s.architecture, emulated(s.facts.cpu, s.facts.os)
    ),
    "glibc": lambda s: system.check_glibc(s.system, s.glibc),
    "home": lambda s: storage.check_home(s.home.root, s.unwritable, s.environ),
    "keys": lambda s: storage.check_keys(s.home),
    "connections": lambda s: system.check_connections(s.connections_problem),
    "disk": lambda s: storage.check_disk(s.home.root, storage.free_bytes(s.home.root)),
    "environments": lambda s: frameworks.check_environments(s.interpreters, s.environments_problem),
    "shared-libraries": lambda s: frameworks.check_shared_libraries(s.interpreters),
    "frameworks": lambda s: frameworks.check_frameworks(s.frameworks),
    "metal-pair": lambda s: gpu.check_pair(s.software("tensorflow"), s.apple_silicon),
    "metal": lambda s: gpu.check_metal(s.frameworks, s.apple_silicon),
    "mlx-backend": lambda s: frameworks.check_mlx_backend(s.software("mlx"), s.system),
    "mlx-blas": lambda s: frameworks.check_mlx_blas(s.frameworks.get("mlx"), s.system),
    "compiler": lambda s: frameworks.check_compiler(
        s.frameworks.get("mlx"), s.system, shutil.which("g++") is not None
    ),
    "nvidia-driver": lambda s: gpu.check_driver(
        s.nvidia, bool(s.facts.os.container), [*filter(shutil.which, gpu.INSTALL_DRIVER)]
    ),
    "cuda": lambda s: gpu.check_cuda(s.nvidia, s.frameworks),
    "self-test": lambda s: frameworks.check_self_tests(s.self_tests, s.environ),
    "power": lambda s: system.check_power(sensors.power(s.system), s.system),
    "energy": lambda s: system.check_energy(*s.energy, s.system),
}


def examine(surroundings: Surroundings, only: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Run the checks, or only those named, and yield each finding.

    Raises:
        UsageProblem: there is no check of a name.
    """
    if unknown := sorted(set(only) - CHECKS.keys()):
        raise UsageProblem(names.unknown("check", unknown[0], list(CHECKS)))
    chosen = [name for name in CHECKS if not only or name in only]
    for name in chosen:
        for finding in CHECKS[name](surroundings):
            yield replace(finding, id=f"{name}.{finding.id}" if finding.id else name)


def refuse_unfit(home: Home) -> None:
    """Stop on WSL 1, native Windows, and a Python that Rosetta translates.

    Raises:
        UsageProblem: the text is doctor's finding and the command that fixes it.
    """
    for finding in examine(Surroundings(home), ("system", "architecture")):
        if finding.verdict == "fail":
            raise UsageProblem(f"{finding.sentence}\n  fix: {finding.hint}")
