"""The server as a program: settings, secrets, usage, socket, and what its help imports."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bench_protocol.base import strict_json
from bench_server.cli import serve
from bench_server.cli.main import main
from bench_server.db import migrate
from bench_server.settings import Settings
from bench_server.web.routes import deps

ROOT = Path(__file__).resolve().parents[2]
BOUNDS = ("ge", "gt", "le", "min_length", "max_length")


def test_the_documents_have_every_setting_and_limit() -> None:
    text = (ROOT / "docs" / "operating.md").read_text()
    for name, field in Settings.model_fields.items():
        assert f"`BENCH_SERVER_{name.upper()}`" in text
        assert field.description
        # The error for a wrong value shows the description, so the description has every bound.
        for bound in field.metadata:
            for limit in filter(None, (getattr(bound, n, None) for n in BOUNDS)):
                assert str(limit) in field.description
    assert f"`already at {migrate.head()}`" in text
    # A proxy with a lower limit would refuse batches.
    assert f"body limit of {deps.BATCH_MAX_BYTES // 2**20} MiB or more" in text
    assert f"{strict_json.MAX_BYTES // 2**20} MiB for one envelope" in text


def test_secrets_come_from_files(tmp_path: Path) -> None:
    """The database's address with its password is in no variable, for every kind of command."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    url = f"sqlite:///{tmp_path / 'from-a-file.db'}"
    (secrets / "BENCH_SERVER_DATABASE_URL").write_text(f"{url}\n")

    def migrated(**variables: str) -> Result:
        environment = {"BENCH_SERVER_SECRETS_DIR": str(secrets)} | variables
        return CliRunner().invoke(main, ["migrate"], env=environment)

    assert migrated().stdout.endswith(f"{url}: schema empty -> {migrate.head()}\n")
    assert migrated().stdout.endswith(f"{url}: schema already at {migrate.head()}\n")
    other = f"sqlite:///{tmp_path / 'from-a-variable.db'}"
    assert migrated(BENCH_SERVER_DATABASE_URL=other).stdout.startswith(f"{other}: schema empty -> ")
    (secrets / "BENCH_SERVER_READ_TOKEN").write_text("secret")
    refused = migrated()
    assert refused.exit_code == 2
    assert "BENCH_SERVER_READ_TOKEN: " in refused.stderr
    assert "secret" not in refused.stderr
    (secrets / "BENCH_SERVER_READ_TOKEN").rename(secrets / "BENCH_SERVER_READ_TOKENS")
    assert "did you mean BENCH_SERVER_READ_TOKEN" in migrated().stderr
    nowhere = migrated(BENCH_SERVER_SECRETS_DIR=str(tmp_path / "nowhere"))
    assert "BENCH_SERVER_SECRETS_DIR: there is no such folder" in nowhere.stderr


@pytest.mark.parametrize(
    ("arguments", "settings", "says"),
    [
        ("serve", {"PORT": "70000"}, "BENCH_SERVER_PORT: this value cannot be used; wanted: a"),
        ("serve", {"WORKERS": "0"}, "wanted: number of processes that serve, 1 to 64"),
        ("serve", {"READ_TOKEN": "secret"}, "16 characters or more"),
        ("serve", {"ADDRESS_RATE": "lots"}, "BENCH_SERVER_ADDRESS_RATE: "),
        ("serve", {"ADDRESS_RATE": "0/minute"}, "BENCH_SERVER_ADDRESS_RATE: "),
        ("serve", {"DATABASE_URL": "nonsense"}, "BENCH_SERVER_DATABASE_URL: not a database URL"),
        ("serve", {"TRUSTED_PROXIES": "10.0.0.7,proxy"}, "BENCH_SERVER_TRUSTED_PROXIES: 'proxy'"),
        ("serve", {"TRUSTED_PROXIES": "10.0.0.1/8"}, "10.0.0.1/8 has host bits set"),
        ("serve", {"DUMPS_DIR": __file__}, "BENCH_SERVER_DUMPS_DIR: there is a file of this"),
        ("serve", {"TRUSTED_PROXY": "::1"}, "did you mean BENCH_SERVER_TRUSTED_PROXIES?"),
        (
            "serve",
            {"DATA_DIR": "/nowhere"},
            "BENCH_SERVER_DATA_DIR: there is no such folder",
        ),
        ("serve", {"DATA_DIR": "/nowhere"}, "BENCH_DATA_DIR=FOLDER bench-agent data fetch"),
        ("serve", {"X": "1"}, "BENCH_SERVER_X: no such setting; after BENCH_SERVER_ there are "),
        ("serve", {"DATABASE_URL": "postgresql+psycopg://x@127.0.0.1:1/x"}, "does not answer"),
        ("migrate", {"DATABASE_URL": "mysql://me:secret@127.0.0.1/x"}, "possible are sqlite:///"),
        ("serve --database-url postgresql://x@y/z", {}, "--database-url: postgresql://"),
        ("migrate --database-url nonsense", {}, "--database-url: "),
        ("reindex", {}, "bench-server migrate"),
        ("migrate --database-url sqlite:////dev/null/x.db", {}, "cannot make the folder"),
    ],
)
def test_wrong_usage_is_one_line(
    tmp_path: Path, arguments: str, settings: dict[str, str], says: str
) -> None:
    chosen = {"PORT": "0", "DATABASE_URL": f"sqlite:///{tmp_path / 'x.db'}"} | settings
    environment = {f"BENCH_SERVER_{name}": value for name, value in chosen.items()}
    done = CliRunner().invoke(main, arguments.split(), env=environment)
    assert done.exit_code == 2, done.stderr
    assert done.stderr.startswith("bench-server: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


def test_the_socket_answers_keep_alive_requests_at_once() -> None:
    """Without uvloop asyncio leaves TCP_NODELAY unset on sockets whose protocol is not named."""
    bound = serve.bind("127.0.0.1", 0)
    try:
        assert bound.proto == socket.IPPROTO_TCP
        assert bound.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert bound.getsockname()[1] > 0
    finally:
        bound.close()


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
