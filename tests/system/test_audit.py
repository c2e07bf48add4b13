"""``make audit`` detects all of its attacks."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from deploy.attacks import mutations
from tests.fakes import results

from bench_protocol import statement

ROOT = Path(__file__).parents[2]


def test_every_attack_is_found() -> None:
    """Without forged traces, which tests/server/test_forged_traces.py sends."""
    done = subprocess.run(
        [sys.executable, ROOT / "deploy" / "audit.py", "owners", "mutations"],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"MUTATIONS": "400"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "24 of 24 as they must be"
    assert all(line.startswith("found ") for line in lines[:24])


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


def test_the_same_seed_makes_the_same_envelopes() -> None:
    made = results.make_result(challenge=mutations.results.seeding.BOUND)
    one = mutations.Honest(results.sealed(made), statement.result_payload(made), mutations.KEYS[0])
    first, second = (
        [mutate(one, random.Random(7)) for mutate in mutations.MUTATIONS] for _ in range(2)
    )
    assert first == second


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
