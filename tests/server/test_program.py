"""The server as a program: settings, secrets, usage, wheel, socket."""

import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
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
PROGRAM = [sys.executable, "-c", "from bench_server.cli.main import main; main()"]
BOUNDS = ("ge", "gt", "le", "min_length", "max_length")


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "operating.md").read_text()
    for name, field in Settings.model_fields.items():
        assert f"`BENCH_SERVER_{name.upper()}`" in text
        assert field.description
        # The error for a wrong value shows the description, so the description has every bound.
        for bound in field.metadata:
            for limit in filter(None, (getattr(bound, n, None) for n in BOUNDS)):
                assert str(limit) in field.description


@pytest.mark.process
def test_migrate_then_serve(empty_database_url: str, tmp_path: Path) -> None:
    from tests.fakes.live import running_server

    environment = os.environ | {"BENCH_SERVER_DATABASE_URL": empty_database_url}
    for says in (f"empty -> {migrate.head()}", f"already at {migrate.head()}"):
        done = subprocess.run(
            [*PROGRAM, "migrate"], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.endswith(f": schema {says}\n")
    with running_server(empty_database_url, tmp_path) as address:
        assert httpx.get(f"{address}/readyz").json() == {
            "status": "ok",
            "entries": 0,
            "projected": 0,
        }


def test_secrets_come_from_files(tmp_path: Path) -> None:
    """The database's address with its password is in no variable, for every kind of command."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    url = f"sqlite:///{tmp_path / 'from-a-file.db'}"
    (secrets / "BENCH_SERVER_DATABASE_URL").write_text(f"{url}\n")

    def migrated(**variables: str) -> Result:
        environment = {"BENCH_SERVER_SECRETS_DIR": str(secrets)} | variables
        return CliRunner().invoke(main, ["migrate"], env=environment)

    assert migrated().stdout.startswith(f"{url}: schema empty -> ")
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
        ("serve", {"DATABASE_URL": "nonsense"}, "BENCH_SERVER_DATABASE_URL: not a database URL"),
        ("serve", {"TRUSTED_PROXIES": "10.0.0.7,proxy"}, "BENCH_SERVER_TRUSTED_PROXIES: 'proxy'"),
        ("serve", {"TRUSTED_PROXIES": "10.0.0.1/8"}, "10.0.0.1/8 has host bits set"),
        ("serve", {"DUMPS_DIR": __file__}, "BENCH_SERVER_DUMPS_DIR: there is a file of this"),
        (
            "serve",
            {"TRUSTED_PROXY": "::1"},
            "no such setting; did you mean BENCH_SERVER_TRUSTED_PROXIES?",
        ),
        ("serve", {"X": "1"}, "BENCH_SERVER_X: no such setting; after BENCH_SERVER_ there are "),
        (
            "serve",
            {"DATABASE_URL": "postgresql+psycopg://x@127.0.0.1:1/x"},
            "the database does not answer",
        ),
        (
            "migrate",
            {"DATABASE_URL": "mysql://me:secret@127.0.0.1/x"},
            "BENCH_SERVER_DATABASE_URL: mysql:// is not supported; possible are sqlite:///PATH",
        ),
        ("serve --database-url postgresql://x@y/z", {}, "--database-url: postgresql://"),
        ("migrate --database-url nonsense", {}, "--database-url: "),
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


@pytest.mark.long
def test_the_wheel_brings_templates_and_migrations(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT / "server"],
        check=True,
    )
    (wheel,) = tmp_path.glob("bench_server-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "server" / "src" / "bench_server"
    wanted = {
        f"bench_server/{file.relative_to(package)}"
        for folder in ("templates", "static")
        for file in (package / "web" / folder).iterdir()
    } | {
        f"bench_server/migrations/{file.relative_to(ROOT / 'migrations')}"
        for file in (ROOT / "migrations").rglob("*.py")
    }
    assert wanted <= names


def test_the_socket_answers_keep_alive_requests_at_once() -> None:
    """Without uvloop asyncio leaves TCP_NODELAY unset on sockets whose protocol is not named."""
    bound = serve.bind("127.0.0.1", 0)
    try:
        assert bound.proto == socket.IPPROTO_TCP
        assert bound.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert bound.getsockname()[1] > 0
    finally:
        bound.close()


def test_the_proxy_limit_in_the_docs_is_the_servers() -> None:
    """A proxy with a lower limit would refuse batches."""
    operating = (ROOT / "docs" / "operating.md").read_text()
    assert f"body limit of {deps.BATCH_MAX_BYTES // 2**20} MiB or more" in operating
    assert f"{strict_json.MAX_BYTES // 2**20} MiB for one envelope" in operating


def test_the_schema_version_in_the_docs_is_the_newest() -> None:
    operating = (ROOT / "docs" / "operating.md").read_text()
    assert f"`already at {migrate.head()}`" in operating
