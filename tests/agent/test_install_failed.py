"""An installation that fails ends with a page, and make fails."""

import shutil
import subprocess
from pathlib import Path

import pytest
from deploy.install_failed import page

ROOT = Path(__file__).parents[2]
# Makes an environment whose pip fails as pip does: an error on stderr, status 1.
PYTHON = """#!/bin/sh
case "$*" in
  *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *pip*) echo "ERROR: No matching distribution found for tensorflow" >&2; exit 1 ;;
  *install_failed.py*) exec {python} "$@" ;;
esac
"""


def test_a_failed_installation_ends_with_what_to_do(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "locks", tmp_path / "locks")
    for name in ("shared", "agent", "server"):
        (tmp_path / name).mkdir()
        shutil.copy(ROOT / name / "pyproject.toml", tmp_path / name)
    (tmp_path / "deploy").mkdir()
    shutil.copy(ROOT / "deploy" / "install_failed.py", tmp_path / "deploy")
    program = tmp_path / "python"
    program.write_text(PYTHON.format(python=shutil.which("python3")))
    program.chmod(0o755)

    run = subprocess.run(
        ["make", "demo", f"PYTHON={program}", "EXTRAS=tensorflow,mlx"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert run.returncode != 0
    assert "No matching distribution found for tensorflow" in run.stderr
    assert "What did not\n  pip could not install Trainmark with tensorflow,mlx." in run.stderr
    assert "      make demo EXTRAS=mlx\n" in run.stderr
    assert not list((tmp_path / ".venv").glob("installed-*"))


@pytest.mark.parametrize(("free_gigabytes", "said"), [(1, True), (100, False)])
def test_a_full_disk_is_named(free_gigabytes: int, said: bool) -> None:
    assert (
        "GB are free on this disk" in page("tensorflow,mlx,energy", free_gigabytes * 10**9)
    ) == said
