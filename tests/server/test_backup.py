"""Backup and restore: the restored server gives the same answers and log root."""

import itertools
import sqlite3
import threading
from datetime import date
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from tests.fakes import results
from tests.fakes.client import NO_LIMITS, Poster
from typer.testing import CliRunner

from bench_server.app import create_app
from bench_server.cli.main import main as cli
from bench_server.db import backup, migrate
from bench_server.db.store import Store, open_engine
from bench_server.export import daily
from bench_server.settings import Settings


def run(*arguments: str, url: str) -> str:
    done = CliRunner().invoke(cli, [*arguments, "--database-url", url])
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments: str, url: str) -> str:
    done = CliRunner().invoke(cli, [*arguments, "--database-url", url])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
    return done.stderr


def test_restored_server_answers_the_same(
    post: Poster, store: Store, database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    for step_ns in (1_000_000, 2_000_000, 1_500_000):
        last = post.made(step_ns=step_ns)
    post(results.make_failure())
    run("import-published", url=database_url)
    copy = tmp_path / "backup.db"
    assert "rows" in run("backup", str(copy), url=database_url)
    paths = ("leaderboard", "results", "machines", "hardware/intel-core-i7-8700", "published")
    result = (f"results/{last}/envelope", f"results/{last}/receipt")
    addresses = ["/checkpoint", *(f"/api/v1/{path}" for path in paths + result)]
    before = [post.http.get(address) for address in addresses]
    assert all(answer.status_code == 200 for answer in before)
    run("migrate", url=empty_database_url)
    assert copy.stat().st_mode & 0o077 == 0
    as_made = copy.read_bytes()
    run("restore", str(copy), url=empty_database_url)
    assert copy.read_bytes() == as_made
    assert not [*tmp_path.glob("backup.db?*")]
    other = Store(empty_database_url)
    authority = post.http.app.state.authority  # type: ignore[attr-defined]
    restored = TestClient(create_app(NO_LIMITS, other, authority=authority))
    after = [restored.get(address) for address in addresses]
    assert [answer.content for answer in after] == [answer.content for answer in before]
    assert Poster(restored).made()
    assert "holds rows" in refused("restore", str(copy), url=empty_database_url)
    other.close()


def test_a_backup_is_of_one_moment(post: Poster, store: Store, tmp_path: Path) -> None:
    """While results arrive: each in the copy has its entry, and its row if it is projected."""
    post.made()
    stop = threading.Event()

    def arrive() -> None:
        while not stop.is_set():
            post.made()

    thread = threading.Thread(target=arrive)
    thread.start()
    try:
        for number in range(3):
            backup.backup(store.engine, tmp_path / f"{number}.db")
    finally:
        stop.set()
        thread.join()
    for number in range(3):
        copy = sqlite3.connect(tmp_path / f"{number}.db")
        received, derived, counted, entries, size, position = (
            copy.execute(f"SELECT {what}").fetchone()[0]
            for what in (
                "count(*) FROM submission",
                "count(*) FROM measurement",
                "sum(repeats) FROM aggregate WHERE level = 'hardware'",
                "count(*) FROM log_entry",
                "max(size) FROM log_checkpoint",
                "position FROM projection",
            )
        )
        copy.close()
        assert entries == size
        assert derived == counted
        assert entries - position == received - derived


def test_what_cannot_be_backed_up_or_restored(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    taken, older, elsewhere = (tmp_path / f"{name}.db" for name in ("taken", "older", "elsewhere"))
    taken.write_text("mine")
    engine = open_engine(f"sqlite:///{older}")
    migrate.migrate(engine)
    engine.dispose()
    for path, statement in (
        (older, "UPDATE alembic_version SET version_num = '0000'"),
        (elsewhere, "CREATE TABLE something (id)"),
    ):
        with sqlite3.connect(path) as database:
            database.execute(statement)
    for command, path, said in (
        ("backup", taken, "exists; name another file"),
        ("restore", tmp_path / "none.db", "there is no file"),
        ("restore", tmp_path, "there is no file"),
        ("restore", taken, "taken.db is no backup: file is not a database; name a file that"),
        ("restore", elsewhere, "elsewhere.db is no backup: nothing of this program is in it"),
        ("restore", older, "bench-server migrate --database-url sqlite:////"),
    ):
        assert said in refused(command, str(path), url=database_url)
    assert taken.read_text() == "mine"


DAMAGE = {
    "UPDATE submission SET repeat = 'two'": "is damaged: table submission, after row 0: row 1 has "
    "str as repeat, not int",
    "UPDATE submission SET received_at = 'soon'": "is damaged: table submission, after row 0: ",
    "UPDATE submission SET id = 'short'": "is damaged: table submission, after row 0: ",
    "UPDATE submission SET payload = NULL": "is damaged: table submission, after row 0: row 1 has "
    "NULL as payload, not bytes",
    "DROP TABLE submission": "is incomplete: table submission is missing",
    "DROP TABLE log_entry": "is incomplete: table log_entry is missing",
}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_damaged_backup_is_named_and_nothing_of_it_restored(
    post: Poster, store: Store, empty_database_url: str, tmp_path: Path
) -> None:
    post.made()
    copy = tmp_path / "backup.db"
    backup.backup(store.engine, copy)
    with sqlite3.connect(copy) as damaged:
        # Tables as another program could write them.
        damaged.executescript(
            "PRAGMA writable_schema = ON;"
            "UPDATE sqlite_master SET sql = replace(sql, 'payload BLOB NOT NULL', 'payload BLOB')"
            "WHERE name = 'submission';"
        )
    whole = copy.read_bytes()
    run("migrate", url=empty_database_url)
    target = open_engine(empty_database_url)
    for statement, says in DAMAGE.items():
        copy.write_bytes(whole)
        with sqlite3.connect(copy) as damaged:
            damaged.execute("PRAGMA ignore_check_constraints = ON")
            damaged.execute(statement)
        said = refused("restore", str(copy), url=empty_database_url)
        assert says in said
        assert "restore another backup" in said or "DROP" in statement
        with target.connect() as connection:
            assert connection.scalar(text("SELECT count(*) FROM signing_key")) == 0
    target.dispose()


def test_export_and_daily_dump(
    post: Poster, store: Store, database_url: str, tmp_path: Path
) -> None:
    post.made()
    run("export", str(tmp_path / "all.jsonl"), url=database_url)
    assert (tmp_path / "all.jsonl").read_bytes() == post.http.get("/api/v1/export.jsonl").content
    folder, kept = tmp_path / "dumps", itertools.product((3, 2), ("csv", "jsonl", "parquet"))
    for day in (1, 2, 3):
        daily.write_daily(store, folder, date(2026, 11, day), keep_days=2)
    names = [f"results-2026-11-0{day}.{form}" for day, form in kept]
    assert {path.name for path in folder.iterdir()} == set(names)
    app = create_app(Settings(dumps_dir=folder), store, authority=post.http.app.state.authority)  # type: ignore[attr-defined]
    http = TestClient(app)
    assert http.get(f"/dumps/{names[0]}").content == (folder / names[0]).read_bytes()
    (folder / f"{names[0]}.partial").write_text("not yet")
    (folder / "private.csv").write_text("mine")
    listed = http.get("/api/v1/dumps").json()["dumps"]
    assert [f"results-{dump['day']}.{dump['format']}" for dump in listed] == names
    page = http.get("/dumps/").text
    for dump in listed:
        file = http.head(f"/dumps/{dump['name']}", headers={"accept-encoding": "identity"})
        assert int(file.headers["content-length"]) == dump["size_bytes"]
        assert f'href="/dumps/{dump["name"]}"' in page
    assert "private" not in page
    for name in ("private.csv", f"{names[0]}.partial", "results-2026-11-09.csv", "..%2fx"):
        assert http.get(f"/dumps/{name}").status_code == 404
    assert "No dump yet" in post.http.get("/dumps/").text
    for arguments in (["export"], ["export", "a.xlsx"], ["export", "a.csv", "--daily", "x"]):
        assert "name a file" in refused(*arguments, url=database_url)


def test_daily_backups_replace_the_days_own_and_the_oldest(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    for day in (1, 2, 3, 3):
        target, count = backup.backup_daily(store.engine, folder, date(2026, 11, day), keep_days=2)
    kept = {"backup-2026-11-02.db", "backup-2026-11-03.db"}
    assert {path.name for path in folder.iterdir()} == kept
    assert (target.name, count) == ("backup-2026-11-03.db", 0)
    url = str(store.engine.url.render_as_string(hide_password=False))
    for arguments in ([], [str(tmp_path / "x.db"), "--daily", str(folder)]):
        assert "name a new file" in refused("backup", *arguments, url=url)
    assert str(folder / "backup-") in run("backup", "--daily", str(folder), url=url)
