"""``make audit-dependencies``: known vulnerabilities of pins, licences of what is installed.

All pins of ``locks/``, those of other platforms too, go to OSV (osv.dev) in one request.
Where OSV does not answer, that is printed and is no failure: a build without internet must not
fail, and must not claim that it has looked. Licences come from the metadata of what the three
distributions bring into this environment. Exit code 1 if there is a finding.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx
from deploy import locks
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
OSV = "https://api.osv.dev"
OUR_OWN = ("bench-protocol", "bench-agent", "bench-server")
# A licence whose conditions would reach Trainmark's own code or users. LGPL and MPL do not, for
# packages that are imported as they are.
BINDING = re.compile(
    r"\b(A?GPL|SSPL|BUSL|CC-BY-NC)|GNU (Affero )?General Public|Commons Clause", re.IGNORECASE
)


class NoAnswer(RuntimeError):
    """The vulnerability service gives no usable answer; the message says why."""


@dataclass(frozen=True)
class Accepted:
    """A vulnerability that does no harm here, until a date."""

    id: str
    until: date
    reason: str


def pins(folder: Path) -> list[tuple[str, str]]:
    """Names and versions of all locks, whatever their markers."""
    texts = (lock.read_text(encoding="utf-8") for lock in folder.glob("*.txt"))
    return sorted({(pin.name, pin.version) for text in texts for pin in locks.pins(text)})


def vulnerabilities(
    service: str, pinned: list[tuple[str, str]]
) -> list[tuple[str, dict[str, Any]]]:
    """Pins with a known vulnerability, and OSV's record of it.

    Raises:
        NoAnswer: there is none, or it is not OSV's.
    """
    queries = [
        {"package": {"ecosystem": "PyPI", "name": name}, "version": version}
        for name, version in pinned
    ]
    found = []
    try:
        with httpx.Client(base_url=service, timeout=20) as http:
            answer = http.post("/v1/querybatch", json={"queries": queries}).raise_for_status()
            for (name, version), row in zip(pinned, answer.json()["results"], strict=True):
                if row.get("next_page_token"):
                    raise NoAnswer(f"{service} has more vulnerabilities of {name} than one answer")
                for vulnerability in row.get("vulns", ()):
                    record = http.get(f"/v1/vulns/{vulnerability['id']}").raise_for_status().json()
                    if "withdrawn" not in record:
                        found.append((f"{name} {version}", record))
    except (httpx.HTTPError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise NoAnswer(f"{service} does not answer: {error or type(error).__name__}") from None
    return found


def findings(
    found: list[tuple[str, dict[str, Any]]], accepted: list[Accepted], today: date
) -> Iterator[str]:
    """A line for each vulnerability that is not accepted, and each acceptance that has ended."""
    names = set()
    for pin, record in found:
        ids = {record["id"], *record.get("aliases", ())}
        names |= ids
        if not any(one.id in ids and today <= one.until for one in accepted):
            summary = " ".join((record.get("summary") or record.get("details", "")).split())
            yield f"{pin}: {', '.join(sorted(ids))}: {summary[:200]}; {_fix(record)}"
    for one in accepted:
        if one.id not in names:
            yield f"{one.id} is accepted and affects no pin: remove it from dependencies.toml"
        elif today > one.until:
            yield f"{one.id} was accepted until {one.until}: raise the pin, or give a new reason"


def _fix(record: Mapping[str, Any]) -> str:
    events = (
        event
        for affected in record.get("affected", ())
        for interval in affected.get("ranges", ())
        for event in interval.get("events", ())
    )
    fixed = sorted({event["fixed"] for event in events if "fixed" in event})
    return f"fixed in {', '.join(fixed)}" if fixed else "no fixed version yet"


def installed() -> dict[str, metadata.Distribution]:
    """What our distributions bring into this environment, with all of their extras."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [(name, "") for name in OUR_OWN]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        try:
            found[name] = distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # of another platform, or of an extra that is not installed
        extras = distribution.metadata.get_all("Provides-Extra") or () if name in OUR_OWN else ()
        for needed in map(Requirement, distribution.requires or ()):
            marker = needed.marker
            if marker and not any(marker.evaluate({"extra": one}) for one in (extra, *extras)):
                continue
            wanted = {(canonicalize_name(needed.name), one) for one in ("", *needed.extras)}
            waiting += wanted - seen
            seen |= wanted
    return found


def licence(distribution: metadata.Distribution) -> str:
    """The licence in a distribution's metadata; empty if it names none."""
    facts = distribution.metadata
    classifiers = (c for c in facts.get_all("Classifier") or () if c.startswith("License :: "))
    text = facts.get("License") or ""
    named = facts.get("License-Expression") or text.split("\n")[0][:80]
    return named or ", ".join(c.rpartition(" :: ")[2] for c in classifiers)


def licence_findings(
    distributions: Mapping[str, metadata.Distribution], by_hand: Mapping[str, str]
) -> Iterator[str]:
    """A line for each package without a licence, or with one that binds those who import it."""
    for name, distribution in sorted(distributions.items()):
        named = licence(distribution) or by_hand.get(name, "")
        if not named:
            yield f"{name}: no licence in its metadata; name it in deploy/dependencies.toml"
        elif BINDING.search(named):
            yield f"{name}: its licence {named!r} also binds a program that imports it"


def main(arguments: list[str] | None = None) -> int:
    """Print findings; 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service", default=OSV, help="address of an OSV server")
    service: str = parser.parse_args(arguments).service
    rules = tomllib.loads((ROOT / "deploy" / "dependencies.toml").read_text(encoding="utf-8"))
    accepted = [Accepted(**one) for one in rules.get("accepted", ())]
    pinned = pins(ROOT / "locks")
    distributions = installed()
    lines = list(licence_findings(distributions, rules["licences"]))
    print(f"{len(distributions)} installed packages: {len(lines)} findings about licences")
    try:
        known = list(findings(vulnerabilities(service, pinned), accepted, _today()))
        print(f"{len(pinned)} pins: {len(known)} findings about vulnerabilities")
        lines += known
    except NoAnswer as problem:
        print(f"WARNING: NO PIN WAS LOOKED UP: {problem}", file=sys.stderr)
    for line in lines:
        print(f"FINDING: {line}")
    return 1 if lines else 0


def _today() -> date:
    return datetime.now(UTC).date()


if __name__ == "__main__":
    sys.exit(main())
