"""Probe frameworks: ask each, in its own process, which devices it sees on this machine."""

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .. import engines
from ..base.messages import ABSENT, Probe, ProbeTask
from .interpreters import Interpreter
from .worker_process import Limits, run_task, worker_command

PROBE_LIMITS = Limits(silence_seconds=120.0)
# Answers by interpreter (its path, None for the agent's own) and framework.
Answers = Mapping[tuple[str | None, str], Probe]


def probe_each(
    logs: Path,
    interpreters: Sequence[Interpreter],
    frameworks: tuple[str, ...] = (),
    settings: Sequence[str] = (),
) -> dict[tuple[str | None, str], Probe]:
    """The answers of each interpreter's frameworks, all that it has or those named.

    ``settings``: goes before each worker's command, such as ``env OMP_NUM_THREADS=1``.
    """
    asked = installed_in(interpreters, frameworks)

    def ask(path: str | None, name: str) -> Probe:
        log = log_of(logs, interpreters, path, name)
        return probe(name, log, [*settings, *worker_command(path)])

    with ThreadPoolExecutor() as pool:
        answers = pool.map(lambda each: ask(*each), asked)
        return dict(zip(asked, answers, strict=True))


def installed_in(
    interpreters: Sequence[Interpreter], frameworks: tuple[str, ...] = ()
) -> list[tuple[str | None, str]]:
    """Each interpreter with each of the frameworks that it has; all frameworks if none is named."""
    return [
        (interpreter.path, name)
        for interpreter in interpreters
        for name in interpreter.frameworks
        if name in (frameworks or engines.names())
    ]


def log_of(
    logs: Path, interpreters: Sequence[Interpreter], path: str | None, framework: str
) -> Path:
    number = [interpreter.path for interpreter in interpreters].index(path)
    return logs / "probes" / (f"{framework}-{number}.log" if path else f"{framework}.log")


def in_use(answers: Answers) -> Answers:
    """The answers with the devices that workers of that interpreter use: each device belongs to
    the first interpreter whose framework sees it."""
    taken: set[tuple[str, str, int]] = set()
    used: dict[tuple[str | None, str], Probe] = {}
    for (path, name), probe in answers.items():
        devices = tuple(
            device.model_copy(update={"python": path})
            for device in probe.devices
            if (name, device.kind, device.index) not in taken
        )
        taken |= {(name, device.kind, device.index) for device in devices}
        used[path, name] = probe.model_copy(update={"devices": devices})
    return used


def merged(answers: Answers, frameworks: tuple[str, ...] = ()) -> dict[str, Probe]:
    """One answer for each framework: all devices, each with its interpreter. Version and problem
    are of the first interpreter whose devices are used, or of the first that has the framework."""
    used, seen = in_use(answers), {}
    for name in frameworks or engines.names():
        those = [probe for (_, framework), probe in used.items() if framework == name]
        first = next((probe for probe in those if probe.devices), (*those, ABSENT)[0])
        devices = tuple(device for probe in those for device in probe.devices)
        seen[name] = first.model_copy(update={"devices": devices})
    return seen


def probe_with(
    logs: Path, command: Sequence[str], frameworks: tuple[str, ...] = ()
) -> dict[str, Probe]:
    """One answer for each framework, of the interpreter and settings of one worker command."""
    names = frameworks or tuple(engines.names())
    with ThreadPoolExecutor() as pool:
        probes = pool.map(lambda name: probe(name, logs / "probes" / f"{name}.log", command), names)
        return dict(zip(names, probes, strict=True))


def probe(framework: str, log: Path, command: Sequence[str]) -> Probe:
    if sys.platform == "win32":
        return Probe(devices=(), environment=None, problem="native Windows: use WSL 2")
    return run_task(ProbeTask(framework=framework), log, PROBE_LIMITS, command)
