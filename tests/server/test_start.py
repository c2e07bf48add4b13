"""``bench-server serve`` prints immediately that it starts, and imports only what it needs."""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.fakes.live import STARTING
from typer.testing import CliRunner

from bench_server.cli.main import main as cli

NEEDED = ("sqlalchemy", "fastapi", "uvicorn", "bench_server.app")
NOT_NEEDED = ("alembic", "scipy", "numpy", "pyarrow", "matplotlib", "bench_server.cli.commands")
PROGRAM = f"""
import sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in {(*NEEDED, *NOT_NEEDED)}:
            print("import", name, flush=True)

sys.meta_path.insert(0, Watch())
from bench_server.cli.main import main
main(["serve", "--port", "0"])
"""


def test_the_first_line_comes_before_anything_heavy_is_imported(
    migrated_file: Path, tmp_path: Path
) -> None:
    database = shutil.copy(migrated_file, tmp_path / "server.db")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=os.environ
        | {
            "BENCH_SERVER_DATABASE_URL": f"sqlite:///{database}",
            "BENCH_SERVER_KEYS_DIR": str(tmp_path / "server-keys"),
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = []
    for line in process.stdout or ():
        lines.append(line)
        if line.startswith("listening on http://127.0.0.1:"):
            break
    process.terminate()
    process.wait(timeout=30)
    assert lines[0] == STARTING
    assert lines[-1].startswith("listening on ")
    assert {line.removeprefix("import ").strip() for line in lines[1:-1]} == set(NEEDED)


def test_commands_are_listed_and_found_although_they_are_imported_late() -> None:
    listed = CliRunner().invoke(cli, ["--help"]).stdout
    for name in ("serve", "migrate", "keys", "export", "verify-log"):
        assert f" {name} " in listed
    assert "Did you mean 'reindex'" in CliRunner().invoke(cli, ["reindx"]).stderr


def test_a_start_that_fails_leaves_the_garbage_collector_on(tmp_path: Path) -> None:
    wrong = ["serve", "--database-url", f"sqlite:///{tmp_path / 'empty.db'}"]
    done = CliRunner().invoke(cli, wrong)
    assert done.exit_code == 2
    assert (done.stdout, gc.isenabled()) == (STARTING, True)
