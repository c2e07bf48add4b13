"""Kept probes: the last answers of the frameworks, in ``probes.json`` of the agent's folder.

``plan`` answers from them at once. A run and ``doctor`` ask the frameworks again.
"""

import platform
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from bench_protocol.base import strict_json
from bench_protocol.base.units import Sha256, UtcTime, Wire, utc_text

from ..base.errors import HomeProblem
from ..base.home import Home, write_durably
from ..base.messages import Probe
from ..worker.environment import worker_environment
from .interpreters import Interpreter
from .probe import Answers

# Environment variables that change which devices a framework sees.
CHANGES_DEVICES = re.compile(
    r"(?:CUDA|NVIDIA|JAX|XLA|TF|KERAS|TORCH|PYTORCH|MLX|METAL|MTL|MPS|LD|DYLD)_|PYTHON"
)


class KeptProbe(Wire):
    """A framework's answer. ``subject``: digest of what it depends on; ``at``: when it was given;
    ``python``: the interpreter, None for the agent's own."""

    subject: Sha256
    at: UtcTime
    python: str | None
    framework: str
    probe: Probe


class _File(Wire):
    probes: tuple[KeptProbe, ...]


def load(
    home: Home, interpreters: Sequence[Interpreter]
) -> dict[tuple[str | None, str], KeptProbe]:
    """The kept answers whose subject is still the same; none if the file is absent or damaged."""
    return _of(_subjects(interpreters), home)


def keep(home: Home, interpreters: Sequence[Interpreter], answers: Answers, at: datetime) -> None:
    """Keep these answers beside those of other frameworks. A problem is not kept: its fix counts at
    once. Where the file cannot be written, nothing is kept."""
    if not answers:
        return
    kept = _of(subjects := _subjects(interpreters), home)
    for (path, name), probe in answers.items():
        kept.pop((path, name), None)
        if probe.problem is None:
            kept[path, name] = KeptProbe(
                subject=subjects[path], at=utc_text(at), python=path, framework=name, probe=probe
            )
    with suppress(HomeProblem):
        content = _File(probes=tuple(kept.values())).model_dump_json(indent=2)
        write_durably(home.probes, content.encode())


def _of(subjects: Mapping[str | None, str], home: Home) -> dict[tuple[str | None, str], KeptProbe]:
    try:
        kept = _File.model_validate_json(home.probes.read_bytes()).probes
    except (OSError, ValidationError):
        return {}
    return {(k.python, k.framework): k for k in kept if subjects.get(k.python) == k.subject}


def _subjects(interpreters: Sequence[Interpreter]) -> dict[str | None, str]:
    return {each.path: subject(each) for each in interpreters if each.frameworks}


def subject(interpreter: Interpreter) -> str:
    """Digest of what decides which devices the frameworks of an interpreter see: what is installed
    there, the system, its NVIDIA driver and devices, and environment variables."""
    there, driver = interpreter.description, Path("/sys/module/nvidia/version")
    passed = worker_environment()
    return strict_json.digest(
        [
            _readable(interpreter.place),
            str(Path(interpreter.place).stat().st_mtime_ns),
            there.model_dump(mode="json", exclude={"packages", "shared"}) if there else None,
            platform.platform(),
            driver.read_text() if driver.exists() else None,
            sorted(path.name for path in Path("/dev").glob("nvidia[0-9]*")),
            {
                name: _readable(value)
                for name, value in passed.items()
                if CHANGES_DEVICES.match(name)
            },
        ]
    )


def _readable(text: str) -> str:
    """A text of the system, whose bytes may be no UTF-8, as one that JSON can hold."""
    return text.encode("utf-8", "backslashreplace").decode()
