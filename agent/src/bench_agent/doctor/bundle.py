"""A report about this machine that a person can attach to an issue: one text, nothing private."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bench_protocol.base.format import plural
from bench_protocol.payload.result import Failed, Result

from .. import __version__
from ..base.home import Home
from ..machine.text import file_text
from ..remote.outbox import Outbox
from ..run import self_test
from ..run.probe import log_of
from .finding import Finding
from .scrub import private_words, scrub
from .table import Surroundings

LAST_LINES, LONGEST_LINE = 60, 1000
MOST_FAILURES = 10
# Packages that decide whether a framework works. Others may be a person's or a company's own.
PACKAGES = re.compile(
    r"bench-(agent|protocol|server)|tensorflow.*|keras|tf-keras|mlx.*|jax.*|torch.*|triton|numpy"
    r"|scipy|h5py|ml-dtypes|protobuf|wrapt|opt-einsum|optree|nvidia-.*|cuda-.*|libclang|grpcio"
    r"|zeus-apple-silicon|psutil|pydantic(-core)?|httpx|pip|setuptools|uv"
)


@dataclass(frozen=True)
class Bundle:
    """The whole report. ``holds``: each heading, and what its part holds in one line. ``text`` is
    scrubbed."""

    holds: Mapping[str, str]
    text: str


def make_bundle(surroundings: Surroundings, findings: Sequence[Finding]) -> Bundle:
    """Collect the report. A part that cannot be read says why; the others are written."""
    parts: dict[str, Callable[[], tuple[str, str]]] = {
        "findings": lambda: _findings(findings),
        "machine": lambda: _machine(surroundings),
        "environments": lambda: _environments(surroundings),
        "frameworks": lambda: _frameworks(surroundings),
        "last run": lambda: _last_run(surroundings.home),
    }
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = f"Trainmark bundle of bench-agent {__version__}, {written}\n"
    holds = {}
    for heading, read in parts.items():
        try:
            holds[heading], part = read()
        except Exception as error:  # a broken machine is what a bundle is for
            holds[heading], part = "could not be read", f"{type(error).__name__}: {error}"
        text += f"\n== {heading}: {holds[heading]}\n\n{part.rstrip()}\n"
    words = private_words(surroundings.home, surroundings.environ)
    return Bundle(holds, scrub("\n".join(map(cut, text.split("\n"))), words))


def cut(line: str) -> str:
    """A line of at most ``LONGEST_LINE`` characters. It is cut at a blank, because half of a
    private word would not be found."""
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE].rpartition(' ')[0]} [cut]"


def summary(bundle: Bundle, path: Path) -> str:
    """What the bundle holds and where it is, on one screen."""
    kilobytes = max(1, round(len(bundle.text.encode()) / 1000))
    lines = [f"wrote {path} ({kilobytes} kB, text). It holds:"]
    lines += [f"  {heading:14}{holds}" for heading, holds in bundle.holds.items()]
    lines += [
        "Replaced: names of users and hosts, paths, addresses, serial numbers, identifiers, keys,",
        "tokens, and the values of environment variables. Nothing was sent.",
        "Read it before you attach it to an issue.",
    ]
    return "\n".join(lines)


def _findings(findings: Sequence[Finding]) -> tuple[str, str]:
    bad = sum(finding.verdict in ("warn", "fail") for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.verdict:5}{finding.id}: {finding.sentence}")
        if finding.hint and finding.verdict in ("warn", "fail"):
            lines.append(f"     hint: {finding.hint}")
    return f"{len(findings)} of doctor, {bad} of them warnings or failures", "\n".join(lines)


def _machine(surroundings: Surroundings) -> tuple[str, str]:
    return "what results say about it, without its hash", as_json(asdict(surroundings.facts))


def _environments(surroundings: Surroundings) -> tuple[str, str]:
    lines = []
    for number, interpreter in enumerate(surroundings.interpreters):
        there = interpreter.description
        version = f"Python {there.python}" if there else "no Python"
        lines.append(f"{number}: {version}, {', '.join(interpreter.frameworks) or 'no framework'}")
        if interpreter.problem:
            lines.append(f"   not used: {interpreter.problem}")
        for name, package in sorted(there.packages.items()) if there else ():
            if PACKAGES.fullmatch(name):
                lines.append(f"   {name}=={package}")
    holds = f"{plural(len(surroundings.interpreters), 'interpreter')}, with versions"
    return holds, "\n".join(lines)


def _frameworks(surroundings: Surroundings) -> tuple[str, str]:
    lines, failed = [], 0
    for (path, name), probe in surroundings.answers.items():
        lines.append(f"{name}: {', '.join(device.name for device in probe.devices) or 'no device'}")
        if probe.environment:
            lines.append(as_json(probe.environment.model_dump(exclude={"packages"})))
        if probe.problem:
            failed += 1
            log = log_of(surroundings.logs, surroundings.interpreters, path, name)
            lines += [f"problem: {probe.problem}", *_log(log)]
    holds = f"{len(surroundings.answers)} asked for their devices, {failed} failed"
    return holds, "\n".join(lines)


def _last_run(home: Home) -> tuple[str, str]:
    results = sorted(
        (entry.result() for entry in Outbox(home.outbox).last_run()),
        key=lambda result: result.clocks.started,
    )
    # A run makes one result after the other, and numbers their logs in this order.
    failures = [each for each in enumerate(results, 1) if isinstance(each[1].outcome, Failed)]
    lines: list[str] = []
    for number, result in failures[:MOST_FAILURES]:
        outcome = result.outcome.model_dump(exclude={"measurement"}, exclude_none=True)
        lines += [
            f"{result.cell}:",
            as_json(outcome),
            *_log(_log_of(home, number, result)),
        ]
    holds = f"{plural(len(results), 'repeat')}, {len(failures)} failed, with the ends of their logs"
    return holds, "\n".join(lines)


def _log_of(home: Home, number: int, result: Result) -> Path:
    """The log of a failed repeat, or of the self-test that it was refused for."""
    if any(warn.code == "self_test_failed" for warn in result.warnings):
        cell = result.cell
        return self_test.log_of(home, cell.framework, cell.device, cell.precision)
    return home.logs / result.run_id / f"{number:04d}.log"


def _log(path: Path) -> Iterator[str]:
    for line in file_text(path).splitlines()[-LAST_LINES:]:
        yield f"| {line}"


def as_json(value: Any) -> str:
    """JSON whose letters are not escaped: an escaped name would not be found."""
    return json.dumps(value, indent=1, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    return str(value)
