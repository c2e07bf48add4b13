"""Asks every framework, each in a process of its own, which devices it sees on this machine."""

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
    """One answer a framework, of all there are if none is named; none absent is started.

    Args:
        command: starts a worker, where it is not this interpreter's.
    """
    names = frameworks or tuple(engines.names())
    with ThreadPoolExecutor() as pool:
        return dict(pool.map(lambda name: (name, probe(name, logs, command)), names))


def probe(framework: str, logs: Path, command: Sequence[str] | None = None) -> Probe:
    """What one framework sees, or why it sees nothing and what mends that."""
    engine = engines.engine_named(framework)
    if sys.platform == "win32":
        return Probe(devices=(), environment=None, problem="native Windows: use WSL 2")
    if command is None and not engines.is_installed(engine):
        problem = f"not installed: {install_extras(framework)}"
        return Probe(devices=(), environment=None, problem=problem)
    return run_probe(framework, logs / "probes" / f"{framework}.log", command=command)
