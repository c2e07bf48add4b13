"""Migrations: up; equal to the tables; the server refuses any other version."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import CheckConstraint, inspect, text
from typer.testing import CliRunner

from bench_server.cli.main import main
from bench_server.db import migrate
from bench_server.db.store import Store, open_engine
from bench_server.db.tables import Table


def test_migrations_make_the_tables_once(empty_database_url: str) -> None:
    engine = open_engine(empty_database_url)
    for _ in range(2):
        migrate.migrate(engine)
        assert migrate.current(engine) == migrate.head()
    options = {"compare_type": True, "compare_server_default": True}
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Table.metadata) == []
        schema = inspect(connection)
        for table in Table.metadata.sorted_tables:
            checks = (one for one in table.constraints if isinstance(one, CheckConstraint))
            named = {check["name"] for check in schema.get_check_constraints(table.name)}
            assert named == {str(check.name) for check in checks}
    engine.dispose()


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_postgresql_compresses_payloads_with_lz4(store: Store) -> None:
    ask = "SELECT enumvals FROM pg_settings WHERE name = 'default_toast_compression'"
    how = "SELECT attcompression FROM pg_attribute WHERE attrelid = 'submission'::regclass"
    with store.engine.connect() as connection:
        built_in = connection.scalar(text(ask))
        method = connection.scalar(text(f"{how} AND attname = 'payload'"))
    assert method == ("l" if "lz4" in built_in else "")


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (None, "bench-server migrate"),
        ("0000", "bench-server migrate"),
        ("9999", "pip install --upgrade bench-server"),
    ],
)
def test_serve_refuses_another_version(
    empty_database_url: str, version: str | None, advice: str
) -> None:
    if version:
        engine = open_engine(empty_database_url)
        migrate.migrate(engine)
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE alembic_version SET version_num = '{version}'"))
        engine.dispose()
    environment = {"BENCH_SERVER_DATABASE_URL": empty_database_url}
    done = CliRunner().invoke(main, ["serve", "--port", "0"], env=environment)
    assert done.exit_code == 2
    assert advice in done.stderr
