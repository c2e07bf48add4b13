"""Output of ``environments``: the interpreters, what each has and what it is used for."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from ..run.interpreters import Interpreter
from ..run.probe import Answers
from .console import say

Document = dict[str, Any]


def document(every: Sequence[Interpreter], used: Answers | None = None) -> Document:
    """Each interpreter: version, frameworks, problem and hint.

    Args:
        used: as :func:`~bench_agent.run.probe.in_use` gives them, for the devices on which
            workers start under each interpreter.
    """
    return {"environments": [_entry(interpreter, used) for interpreter in every]}


def _entry(interpreter: Interpreter, used: Answers | None) -> Document:
    there = interpreter.description
    entry: Document = {
        "interpreter": interpreter.place,
        "own": interpreter.path is None,
        "python": there.python if there else None,
        "agent": there.agent if there else None,
        "frameworks": list(interpreter.frameworks),
        "problem": interpreter.problem,
        "hint": interpreter.hint,
    }
    if used is None:
        return entry
    its = {name: probe for (path, name), probe in used.items() if path == interpreter.path}
    return entry | {
        "devices": {
            name: [device.model_dump(exclude={"python"}) for device in probe.devices]
            for name, probe in its.items()
        },
        "problems": {name: probe.problem for name, probe in its.items() if probe.problem},
        "shared": [group.model_dump(mode="json") for group in there.shared] if there else [],
    }


def show(document: Document, console: Console) -> None:
    """Print :func:`document`: a line for each interpreter, and what it is used for below it."""
    for entry in document["environments"]:
        python = f"Python {entry['python']}" if entry["python"] else "no Python"
        own = ", this agent's own" if entry["own"] else ""
        say(console, f"{entry['interpreter']} ({python}{own})")
        say(console, f"  frameworks: {', '.join(entry['frameworks']) or 'none'}")
        for name, devices in entry.get("devices", {}).items():
            kinds = ", ".join(dict.fromkeys(device["kind"] for device in devices))
            words = entry["problems"].get(name) or kinds or "starts under an interpreter above"
            say(console, f"  {name}: {words}")
        for group in entry.get("shared", ()):
            names = " and ".join(group["distributions"])
            say(console, f"  {names} both install {group['example']}; bench-agent doctor")
        if entry["problem"]:
            say(console, f"  not used: {entry['problem']}")
        if entry["hint"]:
            say(console, f"  fix: {entry['hint']}")
