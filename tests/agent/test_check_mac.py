"""The checkers of ``make check-mac``, with wheels and libraries that are wrong."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.evidence.mac import __main__ as check_mac
from tests.evidence.mac import engines, wheels
from tests.evidence.mac.symbols import FLAT_LOOKUP, Library, checked, unbound
from tests.evidence.mac.wheels import Target

MAC = Target((14, 0), "3.12")
TENSORFLOW = Library(
    "internal.so",
    "@rpath/internal.so",
    exports={"_TF_Dim": "@rpath/framework.dylib", "_TF_Own": None},
)
FRAMEWORK = Library("framework.dylib", "@rpath/framework.dylib", exports={"_TF_Dim": None})
PLUGIN = Library(
    "plugin.dylib",
    loads=("/usr/lib/libc++.1.dylib", "@rpath/internal.so"),
    undefined={"_TF_Dim": 2, "_TF_Own": FLAT_LOOKUP, "_malloc": 1, "_objc_msgSend": FLAT_LOOKUP},
)


@pytest.fixture
def pins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "pins", lambda target: (("mlx", "1.0"), ("pure", "2")))


@pytest.mark.parametrize(
    "tags",
    [
        "cp312-cp312-macosx_15_0_arm64",
        "cp312-cp312-macosx_14_0_x86_64",
        "cp311-cp311-macosx_14_0_arm64",
        "cp312-cp312-manylinux_2_28_aarch64",
    ],
)
def test_a_wheel_with_other_tags_fits_no_mac(tmp_path: Path, pins: None, tags: str) -> None:
    for name in (f"mlx-1.0-{tags}.whl", "pure-2-py3-none-any.whl"):
        (tmp_path / name).touch()
    fitting, problems = wheels.chosen(MAC, tmp_path)
    assert [wheel.name for wheel in fitting] == ["pure-2-py3-none-any.whl"]
    assert problems == ["mlx 1.0 has no wheel for macOS 14.0, Python 3.12"]


def test_the_wheel_for_the_newest_system_is_chosen(tmp_path: Path, pins: None) -> None:
    names = [f"mlx-1.0-cp312-cp312-macosx_{macos}_0_arm64.whl" for macos, _ in wheels.SYSTEMS]
    for name in (*names, "pure-2-py3-none-any.whl"):
        (tmp_path / name).touch()
    for macos, name in zip(wheels.SYSTEMS, names, strict=True):
        assert wheels.chosen(Target(macos, "3.12"), tmp_path)[0][0].name == name


def test_a_library_for_a_newer_macos_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "mlx-1.0-py3-none-macosx_14_0_arm64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("mlx/lib.dylib", b"")
        archive.writestr("mlx/text.txt", b"")
    monkeypatch.setattr(
        wheels, "read_library", lambda path, name: Library(name, oldest_macos=(15, 2, 0))
    )
    assert wheels.too_new(wheel, Target((26, 2), "3.12")) == []
    assert wheels.too_new(wheel, MAC) == [f"{wheel.name}: mlx/lib.dylib needs macOS 15.2.0"]


def test_symbols_that_are_defined_bind() -> None:
    assert unbound(PLUGIN, (TENSORFLOW, FRAMEWORK)) == []
    assert checked(PLUGIN, (TENSORFLOW, FRAMEWORK)) == 2


def test_a_symbol_that_nothing_defines_is_found() -> None:
    older = Library("internal.so", "@rpath/internal.so", exports={"_TF_Own": None})
    (reason,) = unbound(PLUGIN, (older, FRAMEWORK))
    assert reason == "plugin.dylib needs 1 symbols that internal.so do not export: _TF_Dim"
    (reason,) = unbound(PLUGIN, (Library("x", "@rpath/internal.so", exports={"_TF_Dim": None}),))
    assert "_TF_Own" in reason


def test_a_re_export_of_what_its_source_lacks_is_found() -> None:
    (reason,) = unbound(PLUGIN, (TENSORFLOW, Library("framework.dylib", "@rpath/framework.dylib")))
    assert "_TF_Dim" in reason


def test_a_library_under_another_install_name_is_found() -> None:
    """What TensorFlow 2.20 did to tensorflow-metal."""
    renamed = Library("internal.so", "@rpath/common.dylib", exports=TENSORFLOW.exports)
    reasons = unbound(PLUGIN, (renamed, FRAMEWORK))
    assert reasons[0] == "plugin.dylib loads @rpath/internal.so: no library has this install name"


def test_the_macs_versions_are_constraints_under_linux_names_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "pins", lambda target: (("tensorflow", "2.19.1"),))
    assert engines.constraints(MAC) == "tensorflow==2.19.1\ntensorflow-cpu==2.19.1\n"


def test_the_agent_and_its_protocol_do_not_conflict(
    tmp_path: Path, pins: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network the resolution ends there, or at the first package not in uv's cache."""
    asked: list[list[str]] = []
    monkeypatch.setattr(engines, "run", asked.append)
    engines.install(tmp_path / "engines", engines.target(plug_in=False))
    made, install = asked
    subprocess.run(made, check=True)
    dry = subprocess.run([*install, "--dry-run", "--offline"], capture_output=True, text=True)
    assert "conflicting" not in dry.stderr


def test_a_test_that_fails_is_no_pass(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text("def test_it(): assert False, 'planted'\n")
    with pytest.raises(engines.StepFailed, match="planted"):
        engines.tested(sys.executable, str(test))


def test_a_part_that_cannot_be_done_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(target: Target) -> str:
        raise OSError("no space left on device")

    monkeypatch.setattr(check_mac, "downloaded", full)
    monkeypatch.setattr(check_mac, "fitting", lambda target: "131 wheels")
    monkeypatch.setattr(sys, "argv", ["check-mac", "--only", "wheels"])
    assert check_mac.main() == 1
    text = capsys.readouterr().out
    assert text.count("FAILED") == len(wheels.TARGETS)
    assert "no space left on device" in text
    monkeypatch.setattr(check_mac, "downloaded", lambda target: "1.2 GB")
    assert check_mac.main() == 0
