"""Asks every framework, each in a process of its own, which devices it sees on this machine."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import engines
from .job import Probe
from .runner import run_probe


def probe_all(logs: Path, frameworks: tuple[str, ...] = ()) -> dict[str, Probe]:
    """One answer a framework, of all there are if none is named; none absent is started."""
    names = frameworks or tuple(engines.names())
    with ThreadPoolExecutor() as pool:
        return dict(pool.map(lambda name: (name, probe(name, logs)), names))


def probe(framework: str, logs: Path) -> Probe:
    """What one framework sees, or why it sees nothing and what mends that."""
    engine = engines.engine_named(framework)
    if not engines.is_installed(engine):
        problem = f"not installed: {engine.install}"
        return Probe(devices=(), environment=None, problem=problem)
    return run_probe(framework, logs / "probes" / f"{framework}.log")
