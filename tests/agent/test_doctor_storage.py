"""Doctor's checks of disk, folder, keys, data and server, each by itself."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.fakes.datasets import put
from tests.fakes.findings import only

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key, machine_hash
from bench_agent.doctor import network, storage
from bench_agent.doctor.network import ServerAnswer, offset_seconds
from bench_protocol.real_data.manifest import MANIFEST


def test_disk() -> None:
    def check(free: int | None) -> tuple[str, str]:
        return only(storage.check_disk(Path("/x"), free))

    assert check(None)[0] == "skip"
    assert check(2**40)[0] == "ok"
    assert check(2**30)[0] == "warn"
    assert check(2**20) == ("fail", "delete large files on the disk of /x")


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(problem: str | None, path: Path = tmp_path) -> tuple[str, str]:
        return only(storage.check_home(path, problem, {"HOME": str(tmp_path)}))

    assert check(None)[0] == "ok"
    assert check("Permission denied") == ("fail", f"chmod -R u+rwX {tmp_path}")
    monkeypatch.setattr(storage.platformdirs, "user_data_path", lambda name: tmp_path / "e")
    assert check("Read-only file system") == ("fail", f"export BENCH_HOME={tmp_path}/e")
    assert check("Permission denied", Path("/none"))[1] == f"export BENCH_HOME={tmp_path}/e"
    monkeypatch.setattr(storage, "why_not_writable", lambda path: "full")
    assert "sudo chown" in check("Read-only file system")[1]


def test_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    assert only(storage.check_keys(home))[0] == "ok"
    load_or_create_key(home)
    machine_hash(home, b"x")
    assert only(storage.check_keys(home))[0] == "ok"
    for path, mode, right in (
        (home.salt, 0o640, "600"),
        (home.salt, 0o000, "600"),
        (home.key.parent, 0o755, "700"),
    ):
        good = path.stat().st_mode
        path.chmod(mode)
        assert only(storage.check_keys(home)) == ("fail", f"chmod {right} {path}")
        path.chmod(good)
    monkeypatch.setattr(storage, "_owned", lambda path: path != home.salt)
    assert "chown" in only(storage.check_keys(home))[1]


def test_data(tmp_path: Path) -> None:
    for file in next(real for real in MANIFEST if real.name == "mnist").files:
        with put(tmp_path, file.path, b"").open("wb") as sparse:
            sparse.truncate(file.size_bytes)
    environ = {"BENCH_DATA_DIR": str(tmp_path), "KERAS_HOME": str(tmp_path / "none")}
    here, missing = storage.check_data(environ, lambda url: False)
    assert (here.id, here.verdict, missing.id, missing.verdict) == ("mnist", "ok", "", "warn")
    assert "cifar-100 cannot be downloaded: tried " in missing.sentence
    *_, found = storage.check_data(environ, lambda url: True)
    assert (found.verdict, found.hint) == ("ok", f"bench-agent data fetch {found.id}")


def test_server() -> None:
    url = "http://127.0.0.1:1"
    assert only(network.check_server(None))[0] == "skip"
    assert only(network.check_server(ServerAnswer(url, 200)))[0] == "ok"
    assert only(network.check_server(ServerAnswer(url, 404)))[0] == "fail"
    down = ServerAnswer(url, problem="refused")
    assert only(network.check_server(down)) == ("fail", f"bench-agent submit --server {url}")


@pytest.mark.parametrize(
    ("offset", "verdict"),
    [(None, "skip"), (0.7, "ok"), (-4.0, "ok"), (30.0, "warn"), (-900, "fail")],
)
def test_clock(offset: float | None, verdict: str) -> None:
    answer = ServerAnswer("http://x", 200, offset)
    for system in ("Linux", "Darwin"):
        assert only(network.check_clock(answer, system))[0] == verdict


def test_the_clocks_offset_is_taken_at_the_middle_of_the_request() -> None:
    before = datetime(2026, 11, 21, 12, 0, 10, tzinfo=UTC)
    after = before + timedelta(seconds=3)
    assert offset_seconds("Sat, 21 Nov 2026 12:00:00 GMT", before, after) == 11.0
    for odd in (None, "", "yesterday", "Sat, 99 Nov 2026 12:00:00 GMT", "9" * 400):
        assert offset_seconds(odd, before, after) is None
