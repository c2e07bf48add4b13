"""``make audit`` detects all of its attacks."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.evidence.attacks import mutations

ROOT = Path(__file__).parents[2]


def audited(*groups: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.evidence.audit", *(f"--only={name}" for name in groups)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
        env=os.environ | {"MUTATIONS": "400"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MISSED" not in done.stdout
    return done.stdout.splitlines()


@pytest.mark.long  # tests/server has the rules
def test_every_attack_is_found() -> None:
    groups = ("reproduction", "asks", "mutations", "requests")
    lines = audited(*groups)
    assert {f"{name}:" for name in groups} < {*lines}
    assert lines[-1] == "45 of 45 as they must be, 1 not defended"
    assert sum(line.startswith("open ") for line in lines) == 1


@pytest.mark.long
def test_every_attack_that_takes_long_is_found() -> None:
    """The server recomputes in earnest; crowds are large."""
    lines = audited("forged", "owners")
    ways = [line for line in lines if re.match(r"found +way \d+ of 14, ", line)]
    assert len(ways) == 14
    assert lines[-1] == "49 of 49 as they must be, 0 not defended"


def test_an_envelope_that_counts_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another_repeat(honest: mutations.Honest, chance: random.Random) -> bytes:
        document = honest.statement
        document["predicate"]["repeat"] = chance.randrange(2, 1000)
        return mutations._signed(document, honest.key)

    monkeypatch.setattr(mutations, "MUTATIONS", (another_repeat,))
    sent, counts = mutations.mutations(tmp_path, count=20)
    assert sent.found
    assert not counts.found


def test_an_error_of_the_server_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = mutations._outcome

    def failing(status: int) -> str:
        return outcome(503 if status == 422 else status)

    monkeypatch.setattr(mutations, "_outcome", failing)
    monkeypatch.setattr(mutations, "MUTATIONS", (mutations.other_kind,))
    sent, counts = mutations.mutations(tmp_path, count=20)
    assert not sent.found
    assert "answered HTTP 503" in sent.outcome
    assert counts.found
