"""Probe frameworks: ask each, in its own process, which devices it sees on this machine."""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .. import engines
from ..base.install_hints import install_extras
from ..base.messages import Probe
from .worker_process import run_probe


def probe_all(
    logs: Path, frameworks: tuple[str, ...] = (), command: Sequence[str] | None = None
) -> dict[str, Probe]:
    """One answer for each framework, of all if none is named. An absent one starts no process.

    Args:
        command: starts a worker; by default of this interpreter.
    """
    names = frameworks or tuple(engines.names())
    with ThreadPoolExecutor() as pool:
        return dict(pool.map(lambda name: (name, probe(name, logs, command)), names))


def probe(framework: str, logs: Path, command: Sequence[str] | None = None) -> Probe:
    """The devices that one framework sees, or why it sees none and how to fix that."""
    engine = engines.engine_named(framework)
    if sys.platform == "win32":
        return Probe(devices=(), environment=None, problem="native Windows: use WSL 2")
    if command is None and not engines.is_installed(engine):
        problem = f"not installed: {install_extras(framework)}"
        return Probe(devices=(), environment=None, problem=problem)
    return run_probe(framework, logs / "probes" / f"{framework}.log", command=command)
