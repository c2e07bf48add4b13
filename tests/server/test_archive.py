"""Old payloads in object storage: nothing shown changes, and withdrawing erases them there."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from sqlalchemy import LargeBinary, select, type_coerce
from tests.fakes import results, said
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.server.test_feeds import CUDA, SLUG, changed, entries
from typer.testing import CliRunner

from bench_protocol.payload.differences import facts_of
from bench_server.answers import log_entries
from bench_server.audit.verify import audit
from bench_server.cli.main import main as cli
from bench_server.db import archive, backup, environments, migrate
from bench_server.db.archive import ArchiveProblem
from bench_server.db.store import Store
from bench_server.db.tables import Submission
from bench_server.ingest import archiving
from bench_server.projection import reindex

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
memory = pytest.importorskip("fsspec.implementations.memory")
FAR = timedelta(days=365)
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
__all__ = ["changed"]  # a fixture


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an archive."""
    if request.param == "file":
        yield f"file://{tmp_path / 'archive'}"
    else:
        yield "memory://payloads"
        fsspec.filesystem("memory").store.clear()


def stored(store: Store) -> dict[str, bytes]:
    """What the column holds, by the result's id."""
    with store.reading() as session:
        query = select(Submission.id, type_coerce(Submission.payload, LargeBinary))  # type: ignore[call-overload]
        return dict(session.execute(query).all())


def answers(post: Poster, ids: list[str]) -> list[Any]:
    addresses = ["/api/v1/leaderboard", "/api/v1/log/entries"]
    addresses += [f"/api/v1/results/{id}{part}" for id in ids for part in ("", "/envelope")]
    return [post.http.get(address).json() for address in addresses]


def test_moved_payloads_are_read_where_they_are(post: Poster, store: Store, place: str) -> None:
    ids = [post.made() for _ in range(3)]
    before, whole = answers(post, ids), stored(store)
    with store.reading() as session:
        times = {row.id: row.received_at for row in session.scalars(select(Submission))}
    moved = archiving.move(store, place, times[ids[2]])
    assert moved == (2, len(whole[ids[0]]) + len(whole[ids[1]]), 0)
    assert [archive.address_in(stored(store)[id]) is None for id in ids] == [False, False, True]
    assert archiving.move(store, place, times[ids[2]]).payloads == 0
    assert archiving.move(store, place, times[ids[2]] + FAR).payloads == 1
    assert answers(post, ids) == before
    reindex.reindex(store)
    assert answers(post, ids) == before
    with store.reading() as session:
        assert audit(log_entries.fetch_from(session, AUTHORITY, "none")).faults == ()


def test_withdrawing_erases_the_object(post: Poster, store: Store, place: str) -> None:
    identity, other = post.made(), post.made()
    with store.reading() as session:
        (newest,) = session.execute(select(Submission.received_at).where(Submission.id == other))  # type: ignore[call-overload]
    archiving.move(store, place, newest[0] + FAR)
    addresses = {id: str(archive.address_in(value)) for id, value in stored(store).items()}
    payload = archive.get(addresses[identity])
    assert said.act(post, "withdraw", result=identity).status_code == 200
    with pytest.raises(ArchiveProblem, match="cannot be read"):
        archive.get(addresses[identity])
    archive.put(place, payload)  # as if the archive had failed
    assert archiving.move(store, place, newest[0]).erased == 1
    assert archive.get(addresses[other])
    with pytest.raises(ArchiveProblem):
        archive.get(addresses[identity])


def test_an_archive_that_is_away_stops_no_list_and_no_act(
    post: Poster, store: Store, tmp_path: Path
) -> None:
    ids = [post.made() for _ in range(3)]
    with store.reading() as session:
        at = max(session.scalars(select(Submission.received_at)))  # type: ignore[call-overload]
    to = f"file://{tmp_path / 'archive'}"
    archiving.move(store, to, at + FAR)
    address = str(archive.address_in(stored(store)[ids[0]]))
    (tmp_path / "archive").rename(tmp_path / "away")
    assert post.http.get(f"/api/v1/results/{ids[0]}").status_code == 503
    for path in ("/results", "/api/v1/results", "/api/v1/export.csv", "/feed.atom"):
        assert post.http.get(path).status_code == 200
    assert said.act(post, "list").status_code == 200
    assert said.act(post, "hide", result=ids[1]).status_code == 200
    assert said.act(post, "withdraw", result=ids[0]).status_code == 200
    (tmp_path / "away").rename(tmp_path / "archive")
    assert archive.get(address)
    assert archiving.move(store, to, at).erased == 1
    with pytest.raises(ArchiveProblem):
        archive.get(address)


def test_feeds_and_histories_are_answered_from_the_tables(
    post: Poster, changed: str, store: Store, tmp_path: Path
) -> None:
    machine = post.http.get(f"/api/v1/results/{changed}").json()["machine_id"]
    paths = [f"/machines/{machine}/feed.atom", f"/hardware/{SLUG}/feed.atom"]
    before = [entries(post, path) for path in paths]
    history = f"/api/v1/machines/{machine}/history"
    signed = post.http.get(history).json()["changes"]
    with store.reading() as session:
        at = max(session.scalars(select(Submission.received_at)))  # type: ignore[call-overload]
    archiving.move(store, f"file://{tmp_path / 'archive'}", at + FAR)
    (tmp_path / "archive").rename(tmp_path / "away")
    assert [entries(post, path) for path in paths] == before
    assert post.http.get(history).json()["changes"] == signed
    assert post.http.get(f"/machines/{machine}/badge.svg").status_code == 200
    assert "driver" in signed[0]["changed"][0]["name"]


def test_what_the_tables_hold_of_a_result_is_a_part_of_it() -> None:
    machine = results.make_machine("AMD EPYC 9654", ("cuda", "NVIDIA H200", None))
    gpus = (machine.gpus[0].model_copy(update={"driver": "550.9"}),)
    result = results.make_result(
        cell=results.make_cell(device=CUDA), machine=machine.model_copy(update={"gpus": gpus})
    )
    held = environments.facts(environments.environment_row(result), result.cell.framework, 0)
    assert held.items() <= facts_of(result).items()
    assert {"machine.os.version", "machine.gpus.0.driver", "agent.version"} <= held.keys()


def test_a_payload_is_posted_again_while_its_archive_is_away(
    post: Poster, store: Store, tmp_path: Path
) -> None:
    """Its first receipt is the answer, and one transaction saves what is new beside it."""
    sealed = [results.sealed(results.make_result(run_id=f"{n:032x}")) for n in range(3)]
    first = post.http.post("/api/v1/results", content=sealed[0], headers=JSON)
    assert first.status_code == 201, first.text
    with store.reading() as session:
        (at,) = session.scalars(select(Submission.received_at))  # type: ignore[call-overload]
    archiving.move(store, f"file://{tmp_path / 'archive'}", at + FAR)
    (tmp_path / "archive").rename(tmp_path / "away")
    again = post.http.post("/api/v1/results", content=sealed[0], headers=JSON)
    assert (again.status_code, again.json()["receipt"]) == (200, first.json()["receipt"])
    lines = b"\n".join(sealed)
    both = post.http.post("/api/v1/results", content=lines, headers=NDJSON).text.splitlines()
    assert [json.loads(line)["status"] for line in both] == [200, 201, 201]


def test_a_changed_object_is_not_shown(post: Poster, store: Store, tmp_path: Path) -> None:
    identity = post.made()
    (payload,) = stored(store).values()
    with store.reading() as session:
        (at,) = session.scalars(select(Submission.received_at))  # type: ignore[call-overload]
    archiving.move(store, f"file://{tmp_path}", at + FAR)
    (found,) = (path for path in tmp_path.glob("*/*") if path.read_bytes() == payload)
    found.write_bytes(payload + b" ")
    answer = post.http.get(f"/api/v1/results/{identity}/envelope")
    assert (answer.status_code, answer.json()["code"]) == (503, "archive_unavailable")


class Buckets(memory.MemoryFileSystem):  # type: ignore[misc]
    """Object storage as S3 has it: folders need not be made, buckets must, and an absent object can
    be erased."""

    protocol = "buckets"
    store: ClassVar[dict[str, Any]] = {}
    made: ClassVar[set[str]] = set()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("buckets://").strip("/")

    def pipe_file(self, path: str, value: bytes, **_: Any) -> None:
        if not self.exists(path[: path.find("/", 1)]):
            raise FileNotFoundError("The specified bucket does not exist")
        super().pipe_file(path, value)

    def exists(self, path: str, **_: Any) -> bool:
        return path.strip("/") in self.made or super().exists(path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.made.add(path.strip("/").partition("/")[0])

    def rm_file(self, path: str) -> None:
        if self.exists(path):
            super().rm_file(path)


def test_object_storage_gets_no_new_bucket_and_erases_an_object_once() -> None:
    fsspec.register_implementation("buckets", Buckets, clobber=True)
    with pytest.raises(ArchiveProblem, match="bucket does not exist"):
        archive.put("buckets://wrong/payloads", b"{}")
    assert Buckets.made == set()
    Buckets.made.add("right")
    address = str(archive.address_in(archive.put("buckets://right/payloads", b"{}")))
    assert archive.get(address) == b"{}"
    assert [archive.remove(address) for _ in range(2)] == [True, False]


def test_a_backup_has_the_addresses(
    post: Poster, store: Store, empty_database_url: str, tmp_path: Path
) -> None:
    post.made()
    with store.reading() as session:
        (at,) = session.scalars(select(Submission.received_at))  # type: ignore[call-overload]
    archiving.move(store, f"file://{tmp_path / 'archive'}", at + FAR)
    backup.backup(store.engine, tmp_path / "backup.db")
    other = Store(empty_database_url)
    migrate.migrate(other.engine)
    backup.restore(other.engine, tmp_path / "backup.db")
    assert stored(other) == stored(store)
    assert all(archive.address_in(value) for value in stored(other).values())
    other.close()


def test_where_a_payload_cannot_go_it_stays(
    post: Poster, store: Store, database_url: str, tmp_path: Path
) -> None:
    post.made()
    before = stored(store)
    (tmp_path / "taken").write_text("a file")
    for place, says in (
        (f"file://{tmp_path / 'taken'}", "cannot be written"),
        ("payloads", "is no address"),
        ("nothing://payloads", "cannot be used"),
    ):
        command = ["archive", "--to", place, "--older-than-days", "1"]
        done = CliRunner().invoke(cli, [*command, "--database-url", database_url])
        assert (done.exit_code, says in done.output) == (2, True), done.output
    assert stored(store) == before
