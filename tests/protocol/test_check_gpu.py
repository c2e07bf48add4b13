"""``make check-gpu``: what it packs, how a step goes on, and how its figures are applied."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.evidence.gpu import apply, pack, table
from tests.evidence.gpu.parts import Part, run

ROOT = Path(__file__).parents[2]
OFF = {
    "start": [1e-7],
    "short": [1e-7, 1e-5, 1e-6],
    "first": [1e-7, 1e-5, 1e-6],
    "deep": [4e-3, 3e-2, 1e-3],
}


def row(**changed: Any) -> dict[str, Any]:
    cell = {"device": "cuda", "precision": "tf32", "convolves": False}
    return {**cell, "sessions": 5, "off": OFF, "not_conformant": [], **changed}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in (apply.LIMITS, apply.PROTOCOL, apply.RESULTS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def applied(copy: Path, *rows: dict[str, Any]) -> tuple[list[str], str]:
    file = copy / "figures.json"
    file.write_text(json.dumps({"readings": rows}))
    changes = apply.apply(file, copy)
    return changes, (copy / apply.LIMITS).read_text()


def test_a_larger_deviation_widens_its_limit_in_source_and_page(copy: Path) -> None:
    changes, source = applied(copy, row())
    assert changes == ["cuda tf32, deep: (0.01, 0.05) becomes (0.02, 0.09)"]
    found: dict[str, Any] = {"__name__": "bench_protocol.training.copied"}
    exec(compile(source, "copied", "exec"), found)
    assert found["MEASURED"]["cuda", "tf32"]["deep"] == ((2e-2, 9e-2), (2e-3, 4e-1))
    assert found["MEASURED"]["cuda", "mixed_float16"]["deep"][0] == (1e-2, 5e-2)
    page = (copy / apply.PROTOCOL).read_text()
    assert "| cuda, `tf32` | cuda, `mixed_float16` |" in page
    assert "| `deep` | 0.002, 0.02 | 0.01, 0.05 | 0.02, 0.09 | 0.01, 0.05 |" in page
    assert "| `tf32` | 5 | 1e-7 | 4e-3, 3e-2 | - | - |" in (copy / apply.RESULTS).read_text()


def test_deviations_within_the_limits_change_no_limit(copy: Path) -> None:
    small = {kind: [value / 1e3 for value in values] for kind, values in OFF.items()}
    changes, source = applied(copy, row(off=small))
    assert changes == ["every session is within a third of today's limits: they stay"]
    assert source == (ROOT / apply.LIMITS).read_text()
    assert (copy / apply.PROTOCOL).read_text() == (ROOT / apply.PROTOCOL).read_text()


def test_a_precision_without_limits_gets_an_entry(copy: Path) -> None:
    _, source = applied(copy, row(device="metal", precision="mixed_float16"))
    found: dict[str, Any] = {"__name__": "bench_protocol.training.copied"}
    exec(compile(source, "copied", "exec"), found)
    assert found["MEASURED"]["metal", "mixed_float16"]["deep"] == ((2e-2, 9e-2), (2e-3, 2e-1))
    assert found["START"]["metal", "mixed_float16"] == 3e-7


def test_figures_without_readings_are_refused(copy: Path) -> None:
    with pytest.raises(ValueError, match="run the step readings"):
        applied(copy)


def test_a_part_that_fails_or_takes_too_long_is_one_line_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.evidence.gpu.parts.LEAST_SECONDS", 0.0)
    python = sys.executable
    parts = [
        Part("fails", [[python, "-c", "print('before'); raise SystemExit('why')"]], 60),
        Part("hangs", [[python, "-c", "import time; print('up', flush=True); time.sleep(600)"]], 3),
        Part("missing", [["/no/such/program"]], 60),
        Part("works", [[python, "-c", "print(1)"]], 60, "works.txt"),
    ]
    run("step", parts, tmp_path, 200)
    lines = [json.loads(line) for line in (tmp_path / "parts.jsonl").read_text().splitlines()]
    assert [(line["part"], line["exit"]) for line in lines] == [
        ("fails", 1),
        ("hangs", 124),
        ("missing", 127),
        ("works", 0),
    ]
    assert lines[0]["line"] == "why"
    assert lines[1]["line"] == "timed out; up"
    assert (tmp_path / "works.txt").read_text() == "1\n"
    assert "fails | exit 1: why" in "\n".join(table.write(tmp_path))


def test_sources_are_packed_with_what_the_steps_run(tmp_path: Path) -> None:
    told = pack.pack(tmp_path / "packed", wheels=False)
    assert "0 wheels" in told
    for name in ("start.py", "src/benchmarks/recipes.py", "src/tests/evidence/gpu/steps.py"):
        assert (tmp_path / "packed" / name).is_file()
    with pytest.raises(pack.NotPacked, match="is not empty"):
        pack.pack(tmp_path / "packed", wheels=False)


def test_what_the_machine_has_is_not_packed() -> None:
    wanted = pack.wanted()
    assert {"pydantic", "sqlalchemy", "nvidia-ml-py"} <= wanted.keys()
    assert not {"numpy", "torch", "jax", "jaxlib", "pyarrow"} & wanted.keys()
