"""What ``bench-server --help`` imports. tests/protocol/test_command_lines.py has what it shows."""

import json
import subprocess
import sys

# In one process, in this order: only the last line needs the modules of its command.
LINES = ("--help", "--version", "", "migrat", "--hepl", "serve --port x", "keys lsit")
HEAVY = ("sqlalchemy", "fastapi", "uvicorn", "bench_server.settings")
PROGRAM = f"""
import json, sys
from contextlib import suppress
from bench_server.cli.main import main
seen = []
for line in {LINES}:
    with suppress(SystemExit):
        main(line.split())
    seen.append([name for name in {HEAVY} if name in sys.modules])
print(json.dumps(seen))
"""


def test_help_and_usage_errors_import_no_other_command() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    imported = json.loads(done.stdout.splitlines()[-1])
    assert imported == [[]] * (len(LINES) - 1) + [["sqlalchemy", "bench_server.settings"]]
