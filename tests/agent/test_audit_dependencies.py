"""``make audit-dependencies``: findings, accepted ones, no answer, licences. A server on loopback
answers in OSV's format (https://google.github.io/osv.dev/post-v1-querybatch/)."""

import json
from collections.abc import Iterator
from email.message import Message
from importlib import metadata
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pytest
from deploy import audit_dependencies as audit
from packaging.utils import canonicalize_name
from tests.fakes import http_stub
from tests.fakes.ports import free_port

ID, ALIAS = "GHSA-h5c8-rqwp-cp95", "CVE-2024-22195"
RECORD = {
    "id": ID,
    "aliases": [ALIAS],
    "summary": "Jinja vulnerable to HTML attribute injection\nwhen passing user input",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "jinja2"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "3.1.3"}]}],
        }
    ],
}
PINS = """# a comment==1
h5py==3.14.0 ; sys_platform == 'linux' \\
    --hash=sha256:00
h5py==3.16.0 ; sys_platform == 'darwin' \\
    --hash=sha256:01
Jinja2==3.1.2 \\
    --hash=sha256:02
"""
LINE = (
    f"FINDING: jinja2 3.1.2: {ALIAS}, {ID}: Jinja vulnerable to HTML attribute injection when "
    "passing user input; fixed in 3.1.3"
)


class Osv(http_stub.Handler):
    asked: ClassVar[list[Any]] = []
    record: ClassVar[dict[str, Any]] = RECORD

    def answer(self) -> None:
        if self.command == "GET":
            assert self.path == f"/v1/vulns/{ID}"
            self.send(self.record)
            return
        queries = json.loads(self.rfile.read(int(self.headers["content-length"])))["queries"]
        self.asked.append(queries)
        affected = {"package": {"ecosystem": "PyPI", "name": "jinja2"}, "version": "3.1.2"}
        self.send({"results": [{"vulns": [{"id": ID}]} if q == affected else {} for q in queries]})

    def send(self, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def osv(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Osv, "asked", [])
    with http_stub.serving(Osv, Event()) as address:
        yield address


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rules = (audit.ROOT / "deploy" / "dependencies.toml").read_text()
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "dependencies.toml").write_text(rules)
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "agent.txt").write_text(PINS)
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    return tmp_path


def test_a_finding_fails(repository: Path, osv: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every platform's pins are looked up, in one request."""
    assert audit.main(["--service", osv]) == 1
    assert LINE in capsys.readouterr().out.splitlines()
    (asked,) = Osv.asked
    assert [query["version"] for query in asked] == ["3.14.0", "3.16.0", "3.1.2"]


@pytest.mark.parametrize(
    ("identity", "until", "says"),
    [
        (ID, "9999-12-31", None),
        (ALIAS, "9999-12-31", None),
        (ID, "2024-01-31", "was accepted until 2024-01-31"),
        ("GHSA-of-something-else", "9999-12-31", "affects no pin"),
    ],
)
def test_an_accepted_finding_passes_until_its_end(
    repository: Path,
    osv: str,
    identity: str,
    until: str,
    says: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (repository / "deploy" / "dependencies.toml").open("a") as file:
        file.write(f'[[accepted]]\nid = "{identity}"\nuntil = {until}\nreason = "a test"\n')
    assert audit.main(["--service", osv]) == (says is not None)
    assert (says or "") in capsys.readouterr().out


def test_a_withdrawn_record_is_none(
    repository: Path, osv: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Osv, "record", RECORD | {"withdrawn": "2025-01-01T00:00:00Z"})
    assert audit.main(["--service", osv]) == 0


def test_no_answer_is_said_and_is_no_failure(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main(["--service", f"http://127.0.0.1:{free_port()}"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("WARNING: NO PIN WAS LOOKED UP: ")
    assert "pins:" not in said.out


@pytest.mark.parametrize("answer", [{}, [], {"results": []}, {"results": [1, 2, 3]}])
def test_another_service_is_no_answer(
    osv: str, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    monkeypatch.setattr(Osv, "answer", lambda self: self.send(answer))
    with pytest.raises(audit.NoAnswer):
        audit.vulnerabilities(osv, [("jinja2", "3.1.2")])


def test_every_pin_is_read() -> None:
    names = {
        canonicalize_name(line.partition("==")[0])
        for lock in (audit.ROOT / "locks").glob("*.txt")
        for line in lock.read_text().splitlines()
        if line[0] not in "# "
    }
    assert {name for name, _ in audit.pins(audit.ROOT / "locks")} == names


def test_a_licence_that_binds_and_none_at_all_are_findings() -> None:
    class Named(metadata.Distribution):
        def __init__(self, **facts: str) -> None:
            self.facts = Message()
            for name, value in facts.items():
                self.facts[name.replace("_", "-")] = value

        metadata = property(lambda self: self.facts)

        def read_text(self, filename: str) -> None:
            """It has no files."""

        locate_file = read_text  # type: ignore[assignment]

    packages: dict[str, metadata.Distribution] = {
        "affero": Named(License_Expression="AGPL-3.0-or-later"),
        "by-hand": Named(),
        "classified": Named(Classifier="License :: OSI Approved :: MIT License"),
        "gnu": Named(Classifier="License :: OSI Approved :: GNU General Public License v3 (GPLv3)"),
        "lesser": Named(License_Expression="LGPL-3.0-only"),
        "nameless": Named(),
    }
    lines = list(audit.licence_findings(packages, {"by-hand": "MIT"}))
    assert [line.partition(":")[0] for line in lines] == ["affero", "gnu", "nameless"]


def test_what_is_installed_is_found() -> None:
    found = audit.installed()
    assert {"bench-agent", "starlette", "psycopg-binary", "mdurl"} <= found.keys()
    assert "pytest" not in found
