"""Inventory of this machine as JSON and tables: devices, frameworks, interpreters, data sets."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.hardware import hardware_name
from bench_protocol.payload.machine import Machine

from .. import engines
from ..base.messages import ABSENT
from ..run.interpreters import Interpreter
from ..run.probe import Answers
from .console import FAILURE, SOFT, console, say, show_table
from .documents import Document

DATA_HEADINGS = ("data set", "size", "here", "workloads")


def devices_document(machine: Machine, used: Answers) -> Document:
    """The machine's facts, and the devices of each framework and interpreter. ``used``: as
    :func:`~bench_agent.run.probe.in_use` gives them."""
    there = {name for _, name in used}
    rows = dict(used)
    rows |= {(None, name): ABSENT for name in engines.names() if name not in there}
    return {
        "machine": machine.model_dump(mode="json"),
        "frameworks": [
            {
                "framework": name,
                "python": path,
                "packages": dict(probe.environment.packages) if probe.environment else {},
                "problem": probe.problem,
                "devices": [
                    {
                        **device.model_dump(),
                        "hardware": hardware_name(
                            machine, Device(kind=device.kind, index=device.index)
                        ),
                    }
                    for device in probe.devices
                ],
            }
            for (path, name), probe in sorted(rows.items(), key=lambda row: row[0][1])
            if probe.devices or probe.problem
        ],
    }


def print_devices(document: Document) -> None:
    machine = document["machine"]
    memory = people.size(machine["memory_bytes"]) if machine["memory_bytes"] else "unknown"
    shown, rows = console(), []
    say(shown, f"{machine['cpu']['brand']}, {memory} memory, {machine['os']['version']}")
    places: dict[str, list[str]] = {}
    for row in document["frameworks"]:
        version = next(iter(row["packages"].values()), "")
        for device in row["devices"]:
            name = f"{device['kind']}:{device['index']}" if device["index"] else device["kind"]
            rows.append([row["framework"], version, name, device["hardware"]])
            if row["python"]:
                places.setdefault(row["python"], []).append(f"{row['framework']} {name}")
        if not row["devices"]:
            style = SOFT if row["problem"] == ABSENT.problem else FAILURE
            problem = Text(row["problem"] or "", style)
            rows.append([row["framework"], version, "none", problem])
    show_table(shown, ("framework", "version", "device", "hardware"), rows)
    for python, names in places.items():
        say(shown, f"{', '.join(names)} under:\n  {python}")


def environments_document(every: Sequence[Interpreter], used: Answers | None = None) -> Document:
    """Each interpreter: version, frameworks, problem and hint. ``used``: as
    :func:`~bench_agent.run.probe.in_use` gives them, for the devices on which workers start under
    each interpreter."""
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


def print_environments(document: Document) -> None:
    shown = console()
    for entry in document["environments"]:
        python = f"Python {entry['python']}" if entry["python"] else "no Python"
        own = ", this agent's own" if entry["own"] else ""
        say(shown, f"{entry['interpreter']} ({python}{own})")
        say(shown, f"  frameworks: {', '.join(entry['frameworks']) or 'none'}")
        for name, devices in entry.get("devices", {}).items():
            kinds = ", ".join(dict.fromkeys(device["kind"] for device in devices))
            words = entry["problems"].get(name) or kinds or "starts under an interpreter above"
            say(shown, f"  {name}: {words}")
        for group in entry.get("shared", ()):
            names = " and ".join(group["distributions"])
            say(shown, f"  {names} both install {group['example']}; bench-agent doctor")
        if entry["problem"]:
            say(shown, f"  not used: {entry['problem']}")
        if entry["hint"]:
            say(shown, f"  fix: {entry['hint']}")


def print_data_sets(document: Document) -> None:
    """Table of :func:`~bench_agent.data.inventory.list_document`."""
    rows = []
    for item in document["data_sets"]:
        present = [place for place in item["files"].values() if place]
        whole = len(present) == len(item["files"])
        count = f"{len(present)} of {people.plural(len(item['files']), 'file')}"
        here = str(Path(present[0]).parent) if whole else count
        workloads = ", ".join(item["workloads"])
        rows.append([item["name"], people.size(item["bytes"]), here, workloads])
    shown = console()
    show_table(shown, DATA_HEADINGS, rows, right=("size",))
    licences = ", ".join(f"{item['name']} {item['licence']}" for item in document["data_sets"])
    say(shown, f"Licences: {licences}")
    say(shown, f"To download them into {document['folder']}:\n  bench-agent data fetch")
