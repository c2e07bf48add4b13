"""docs/stranger.py: a client written from docs/protocol.md alone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.recompute import figures

CLIENT = Path(__file__).parents[2] / "docs" / "stranger.py"


def test_it_uses_none_of_our_packages() -> None:
    imported = re.findall(r"^(?:from|import) (\w+)", CLIENT.read_text(), re.MULTILINE)
    assert set(imported) - set(sys.stdlib_module_names) == {"cryptography", "numpy"}
    assert len(CLIENT.read_text().splitlines()) < 300


def test_it_enrolls_sends_and_verifies(address: str) -> None:
    done = subprocess.run(
        [sys.executable, "-I", CLIENT, address], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    first, nonce, loss, movements, second, third = done.stdout.splitlines()
    assert (first, second) == ("entry 0 of 2", "entry 2 of 3")
    workload = workload_named("mnist-dense")
    right = figures(workload, nonce.removeprefix("nonce "), 1).readings[0]
    assert numbers(loss) == pytest.approx([right.loss], rel=1e-8)
    assert numbers(movements) == pytest.approx(right.movements, rel=1e-8)
    assert re.fullmatch(r"result [0-9a-f]{16}, trust level 1", third)


def numbers(line: str) -> list[float]:
    return [float(word) for word in line.split()[1:]]
