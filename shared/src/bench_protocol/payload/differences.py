"""What differs between two results in machine and software, and its words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base import format as people
from .machine import SYSTEMS, Environment, Machine
from .result import Result

GROUPS = re.compile(r"^(machine|environment(\.packages|\.libraries)?)\.")
GPU = re.compile(r"^gpus (\d+) (.+)$")
Facts = Mapping[str, str]
MOST_NAMED = 2


@dataclass(frozen=True)
class Difference:
    """A property of machine or software that differs; null where it has none."""

    name: str
    before: str | None
    after: str | None


def facts(machine: Machine, environment: Environment) -> dict[str, str]:
    """The properties that are not null, by dotted names: ``machine.gpus.0.driver``."""
    named = {
        "machine": machine.model_dump(mode="json"),
        "environment": environment.model_dump(mode="json"),
    }
    return dict(_flat("", named))


def facts_of(result: Result) -> dict[str, str]:
    return {
        "agent.version": result.agent.version,
        **facts(result.machine, result.environment),
    }


def differences(before: Facts, after: Facts) -> tuple[Difference, ...]:
    return tuple(
        Difference(name, before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def in_words(difference: Difference, system: str) -> str:
    """``macOS 14.6 became 15.5``, ``driver of GPU 0 550.9 became 560.35``, ``xla 1.2 was added``"""
    name = GROUPS.sub("", difference.name)
    name = SYSTEMS.get(system, system) if name == "os.version" else name.replace(".", " ")
    name = GPU.sub(r"\2 of GPU \1", name)
    if difference.name == "machine.os.page_bytes":
        sizes = (
            value and people.size(int(value)) for value in (difference.before, difference.after)
        )
        name, difference = "page size", Difference("", *sizes)
    if difference.before is None:
        return f"{name} {difference.after} was added"
    if difference.after is None:
        return f"{name} {difference.before} was removed"
    return f"{name} {difference.before} became {difference.after}"


def several_in_words(changed: Sequence[Difference], system: str) -> str:
    words = [in_words(one, system) for one in changed[:MOST_NAMED]]
    if more := len(changed) - len(words):
        words.append(f"{more} more")
    return ", ".join(words)


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else name, inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, inner in enumerate(value):
            yield from _flat(f"{prefix}.{number}", inner)
    elif value is not None:
        yield prefix, str(value)
