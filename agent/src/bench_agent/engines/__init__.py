"""Engines: a module or folder for each framework (docs/adding.md), found by listing this folder."""

from importlib import import_module
from pkgutil import iter_modules

from ..base.names import unknown
from .seam import Engine

NOT_ENGINES = {"seam", "common", "loop", "cpu"}


def names() -> list[str]:
    """Frameworks that have an engine, installed or not."""
    return sorted(
        module.name for module in iter_modules(__path__) if module.name not in NOT_ENGINES
    )


def engine_named(name: str) -> Engine:
    """The engine of a framework. Does not import the framework.

    Raises:
        LookupError: there is none; the message lists all engines.
    """
    if name not in names():
        raise LookupError(unknown("framework", name, names()))
    engine: Engine = import_module(f".{name}", __name__).ENGINE
    return engine
