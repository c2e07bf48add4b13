"""``make audit`` detects all of its attacks."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_attack_is_found() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "deploy" / "audit.py"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "20 of 20 as they must be"
    assert all(line.startswith("found ") for line in lines[:20])
