"""The two roles of deploy/postgresql/roles.sql: the server's cannot change a table."""

import os
import shutil
import subprocess
from pathlib import Path

import httpx
import psycopg
import pytest
from tests.fakes import postgres, results
from tests.fakes.client import Poster
from tests.fakes.live import running_server
from typer.testing import CliRunner

from bench_server.cli.main import main as cli

ROOT = Path(__file__).resolve().parents[2]


def with_roles(cluster: postgres.Cluster, secrets: Path) -> None:
    """Run roles.sql as the cluster's superuser."""
    for role in ("migrate", "server"):
        (secrets / f"{role}_password").write_text(f"of-{role}\n")
    subprocess.run(
        [
            shutil.which("psql") or cluster.bin / "psql",
            *("-q", "-h", cluster.folder, "-U", cluster.user, "-d", "postgres"),
            *("-f", ROOT / "deploy" / "postgresql" / "roles.sql"),
        ],
        env=os.environ | {"TRAINMARK_SECRETS": str(secrets)},
        check=True,
    )


def test_the_server_works_and_cannot_change_a_table(
    cluster: postgres.Cluster, tmp_path: Path
) -> None:
    with_roles(cluster, tmp_path)
    owner, server = (
        f"postgresql+psycopg://trainmark_{role}@/trainmark?host={cluster.folder}"
        for role in ("migrate", "server")
    )

    def run(url: str, *arguments: str) -> str:
        done = CliRunner().invoke(cli, [*arguments, "--database-url", url])
        assert done.exit_code == 0, done.output
        return done.output

    run(owner, "migrate")
    with running_server(server, tmp_path) as address, httpx.Client(base_url=address) as http:
        post = Poster(http)
        post.enroll()
        identity = post(results.make_result())
        assert http.get(f"/api/v1/results/{identity}?wait=10").status_code == 200
    run(server, "import-published")
    assert "projected 2 " in run(server, "reindex")
    assert "rows" in run(server, "backup", str(tmp_path / "backup.db"))
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in (
            "DROP TABLE submission",
            "TRUNCATE submission CASCADE",
            "ALTER TABLE submission ADD x int",
            "CREATE TABLE other (x int)",
            "DROP SCHEMA public CASCADE",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    run(owner, "migrate", "--to", "base", "--lose")
