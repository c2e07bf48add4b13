"""Reading a Mac through stand-ins of its commands."""

from pathlib import Path

import pytest
from tests.fakes.mac import FakeMac

from bench_agent.machine import macos

FOLDER = Path(__file__).parents[1] / "fakes" / "apple"


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMac:
    return FakeMac(tmp_path, monkeypatch)


@pytest.mark.parametrize("ends_at_first", [False, True])
def test_names_unknown_to_sysctl_cost_no_other_value(mac: FakeMac, ends_at_first: bool) -> None:
    mac.sysctl((FOLDER / "m5max_super.sysctl.txt").read_text(), ends_at_first=ends_at_first)
    cpu = macos.cpu()
    assert (cpu.brand, cpu.physical_cores, cpu.performance_cores) == ("Apple M5 Max", 18, 18)
    assert macos.memory_bytes() == 51539607552


def test_a_sysctl_that_fails_has_still_printed_what_it_knows(mac: FakeMac) -> None:
    mac.command("sysctl", "print('hw.memsize: 7516192768')\nsys.exit(3)")
    assert macos.memory_bytes() == 7516192768


def test_a_mac_without_any_command_is_read_too(mac: FakeMac) -> None:
    assert macos.gpus() == ()
    assert macos.cpu().brand == "unknown Apple CPU"
