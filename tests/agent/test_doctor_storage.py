"""Doctor's checks of disk, folder, keys, data and server, as pure functions."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.fakes.findings import only, verdicts

from bench_agent.doctor import network, storage
from bench_agent.doctor.network import ServerAnswer, offset_seconds
from bench_agent.doctor.storage import DataSet, Folder, Secret


def test_disk() -> None:
    def check(free: int | None, logs: int = 0) -> tuple[str, str]:
        return only(storage.check_disk(Path("/x y"), free, logs, Path("/x y/logs")))

    assert check(None)[0] == "skip"
    assert check(2**40)[0] == "ok"
    assert check(2**30)[0] == "warn"
    assert check(2**20) == ("fail", "delete large files below /x y")
    assert check(2**20, 2**30) == ("fail", "rm -r '/x y/logs'")


def test_home() -> None:
    def check(problem: str | None, owned: bool, elsewhere: str | None) -> tuple[str, str]:
        place = Path(elsewhere) if elsewhere else None
        return only(storage.check_home(Folder(Path("/h"), problem, True, owned, place)))

    assert check(None, True, None)[0] == "ok"
    assert check("Permission denied", True, "/e") == ("fail", "chmod -R u+rwX /h")
    assert check("Permission denied", False, "/e") == ("fail", "export BENCH_HOME=/e")
    assert check("Read-only file system", True, "/e") == ("fail", "export BENCH_HOME=/e")
    assert "sudo chown" in check("Permission denied", False, None)[1]


def test_keys() -> None:
    good = Secret(Path("/k/machine.pem"), 0o600, owned=True)
    bad = Secret(Path("/k/salt"), 0o640, owned=True)
    assert verdicts(storage.check_keys(())) == verdicts(storage.check_keys((good,)))
    assert only(storage.check_keys((good, bad))) == ("fail", "chmod 600 /k/salt")
    other = Secret(Path("/k/salt"), 0o600, owned=False)
    assert "chown" in only(storage.check_keys((other,)))[1]
    unreadable = Secret(Path("/k/salt"), 0, owned=True)
    assert only(storage.check_keys((unreadable,))) == ("fail", "chmod 600 /k/salt")
    folder = Secret(Path("/k"), 0o755, owned=True, is_folder=True)
    assert only(storage.check_keys((good, folder))) == ("fail", "chmod 700 /k")


def test_data() -> None:
    here = DataSet("mnist", (), Path("/d"), "")
    away = DataSet("cifar-100", ("c.tar.gz",), Path("/d"), "https://example.org/c.tar.gz")
    _, missing = storage.check_data((here, away), {})
    assert missing.sentence == "cifar-100 cannot be downloaded: tried example.org, and got no file"
    assert verdicts(storage.check_data((here, away), {"cifar-100": False})) == {
        "data.mnist": "ok",
        "data": "warn",
    }
    actual, hint = only(storage.check_data((away,), {"cifar-100": True}))
    assert actual == "ok"
    assert hint == "bench-agent data fetch cifar-100"


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
