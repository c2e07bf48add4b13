"""What ``bench-server --help`` imports. tests/protocol/test_command_lines.py has what it shows."""

import subprocess
import sys

import pytest

HEAVY = ("sqlalchemy", "fastapi", "uvicorn", "bench_server.settings")


@pytest.mark.parametrize(
    ("line", "imported"),
    [
        ("--help", ""),
        ("--version", ""),
        ("", ""),
        ("migrat", ""),
        ("--hepl", ""),
        ("serve --port x", ""),
        ("restore", "sqlalchemy, bench_server.settings"),
        ("keys lsit", "sqlalchemy, bench_server.settings"),
    ],
)
def test_help_and_usage_errors_import_no_other_command(line: str, imported: str) -> None:
    code = (
        "import atexit, sys; from bench_server.cli.main import main;"
        f"atexit.register(lambda: print([n for n in {HEAVY} if n in sys.modules]));"
        f"main({line.split()!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == str(imported.split(", ") if imported else [])
