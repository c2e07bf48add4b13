"""The two roles of deploy/postgresql/roles.sql: the server's can change no table and no history."""

from pathlib import Path

import httpx
import psycopg
import pytest
from tests.fakes import postgres, results
from tests.fakes.client import Poster
from tests.fakes.live import running_server
from typer.testing import CliRunner

from bench_protocol.payload.result import Challenge
from bench_server.cli.main import main as cli
from bench_server.db.privileges import PRIVILEGES
from bench_server.db.tables import Table

REFUSED = (
    "DROP TABLE submission",
    "TRUNCATE submission CASCADE",
    "ALTER TABLE submission ADD x int",
    "CREATE TABLE other (x int)",
    "DROP SCHEMA public CASCADE",
    "UPDATE alembic_version SET version_num = '0001'",
    "INSERT INTO alembic_version VALUES ('0001')",
    "UPDATE submission SET payload = ''",
    "UPDATE submission SET received_at = now()",
    "UPDATE log_entry SET commitment = ''",
    "UPDATE log_entry SET logged_at = now()",
    "DELETE FROM log_entry",
    "UPDATE log_node SET level = level",
    "UPDATE log_checkpoint SET size = size",
    "UPDATE withdrawn SET log_index = log_index",
    *(f"DELETE FROM {table}" for table in ("log_node", "log_checkpoint", "log_break", "withdrawn")),
    *(f"DELETE FROM {table}" for table in ("signing_key", "owner", "invite", "cosignature")),
)
KEY = results.key_id(results.private_key())


@pytest.mark.parametrize("written", ["", "migrate", "server"])
def test_no_role_has_an_empty_password(
    cluster: postgres.Cluster, tmp_path: Path, written: str
) -> None:
    """A superuser who cannot read a file would make a role without a password."""
    if written:
        (tmp_path / f"{written}_password").write_text("secret\n")
    done = cluster.run_roles(TRAINMARK_SECRETS=str(tmp_path))
    assert done.returncode != 0
    assert "set TRAINMARK_SECRETS to the folder" in done.stderr
    assert "already exists" not in done.stderr  # nothing was created or tried


def test_the_server_works_and_cannot_change_a_table(
    cluster: postgres.Cluster, tmp_path: Path
) -> None:
    cluster.create("roles", postgres.OWNER)
    owner, server = (cluster.url("roles", role) for role in (postgres.OWNER, postgres.SERVER))

    def run(url: str, *arguments: str) -> str:
        environment = {"BENCH_SERVER_KEYS_DIR": str(tmp_path / "server-keys")}
        done = CliRunner().invoke(cli, [*arguments, "--database-url", url], env=environment)
        assert done.exit_code == 0, done.output
        return done.output

    run(owner, "migrate")
    with psycopg.connect(owner.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {postgres.SERVER}")
    run(owner, "migrate")  # sets the privileges again
    with running_server(server, tmp_path) as address, httpx.Client(base_url=address) as http:
        post = Poster(http)
        post.enroll()
        kept, withdrawn = post(results.make_result()), post(results.make_result())
        asked = post.ask()
        given = {name: asked.json()[name] for name in Challenge.model_fields}
        last = post(results.make_result(challenge=Challenge(**given)))
        assert http.get(f"/api/v1/results/{last}?wait=10").status_code == 200
        for decision in (
            ("results", "flag", kept, "--reason", "a test"),
            ("results", "withdraw", withdrawn, "--yes"),
            ("owners", "assign", KEY, "lab"),
            ("owners", "confirm", "lab"),
            ("keys", "revoke", KEY, "--reason", "a test", "--since", "3"),
        ):
            assert "logged as entry" in run(server, *decision)
        run(server, "create-invite")
    run(server, "recompute", "--once")
    run(server, "import-published")
    assert "projected " in run(server, "reindex")
    assert "rows" in run(server, "backup", str(tmp_path / "backup.db"))
    run(server, "verify-log")
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in REFUSED:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_privileges_name_tables_that_exist() -> None:
    assert PRIVILEGES.keys() - {"alembic_version"} <= Table.metadata.tables.keys()
