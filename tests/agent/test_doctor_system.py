"""Doctor's checks of Python, the system, and TensorFlow's version pairs, as pure functions."""

from collections.abc import Mapping

import pytest
from tests.fakes.findings import only, verdicts

from bench_agent.doctor import apple, python
from bench_agent.doctor.software import Software
from bench_agent.doctor.versions import at_least, release


@pytest.mark.parametrize(
    ("packages", "verdict", "hint"),
    [
        ({"tensorflow": "2.18.1", "tensorflow-metal": "1.2.0", "numpy": "2.0.2"}, "ok", ""),
        ({"tensorflow": "2.19.1", "tensorflow-metal": "1.2.0", "numpy": "2.1.3"}, "ok", ""),
        (
            {"tensorflow": "2.18.1", "tensorflow-metal": "1.2.0", "numpy": "2.1.3"},
            "warn",
            "'numpy<2.1'",
        ),
        (
            {"tensorflow": "2.19.0", "tensorflow-metal": "1.2.0", "numpy": "2.2.0"},
            "warn",
            "'numpy<2.2'",
        ),
        ({"tensorflow": "2.20.0", "tensorflow-metal": "1.2.0"}, "fail", "'tensorflow>=2.18,<2.20'"),
        ({"tensorflow": "2.21.0rc1", "tensorflow-metal": "1.2.0"}, "fail", "<2.20"),
        (
            {"tensorflow": "2.21.0", "tensorflow-metal": "1.1.0"},
            "fail",
            "<2.20' tensorflow-metal==1.2.0",
        ),
        ({"tensorflow": "2.18.0", "tensorflow-metal": "1.1.0"}, "fail", "tensorflow-metal==1.2.0"),
        ({"tensorflow": "2.16.2", "tensorflow-metal": "1.2.0"}, "warn", "tensorflow>=2.18"),
        ({"tensorflow": "odd", "tensorflow-metal": "1.2.0"}, "warn", "tensorflow>=2.18"),
        ({"tensorflow-metal": "1.2.0"}, "fail", "tensorflow>=2.18,<2.20"),
        ({"tensorflow": "2.19.1"}, "warn", "tensorflow-metal==1.2.0"),
        ({"tensorflow": "2.21.0"}, "warn", "tensorflow>=2.18,<2.20"),
        ({}, "skip", ""),
    ],
)
def test_pairs_of_tensorflow_and_its_plug_in(
    packages: Mapping[str, str], verdict: str, hint: str
) -> None:
    actual, actual_hint = only(apple.check_pair(Software(packages), apple_silicon=True))
    assert actual == verdict
    assert hint in actual_hint


def test_elsewhere_no_plug_in_is_missed() -> None:
    assert (
        only(apple.check_pair(Software({"tensorflow": "2.21.0"}), apple_silicon=False))[0] == "skip"
    )


@pytest.mark.parametrize(
    ("layers", "problem", "fuses", "verdict", "words"),
    [
        ("stock", None, True, "ok", "layers and optimisers compute correctly"),
        ("stock", None, False, "warn", "TURN_OFF_REMAPPER=1"),
        ("safe", None, True, "warn", "layers=safe"),
        (None, None, True, "skip", "no Metal device"),
        (None, "wrong result in phase build", True, "fail", "in every form"),
        (None, "stalled in phase warm_up", True, "fail", "stalled in phase warm_up"),
    ],
)
def test_the_metal_probe(
    layers: str | None, problem: str | None, fuses: bool, verdict: str, words: str
) -> None:
    (finding,) = apple.check_probe(layers, problem, fuses)
    assert finding.verdict == verdict
    assert words in finding.sentence


@pytest.mark.parametrize(
    ("version", "system", "machine", "verdict"),
    [
        ((3, 10), "Linux", "x86_64", "fail"),
        ((3, 11), "Linux", "x86_64", "ok"),
        ((3, 12), "Darwin", "arm64", "ok"),
        ((3, 13), "Darwin", "arm64", "warn"),
        ((3, 14), "Linux", "aarch64", "warn"),
    ],
)
def test_python(version: tuple[int, int], system: str, machine: str, verdict: str) -> None:
    actual, hint = only(python.check_python(version, system, machine))
    assert actual == verdict
    assert verdict == "ok" or "--python 3.12" in hint


def test_architecture() -> None:
    check = python.check_architecture
    assert only(check("Darwin", "x86_64", rosetta=True))[0] == "fail"
    assert only(check("Darwin", "arm64", rosetta=False))[0] == "ok"
    assert only(check("Linux", "aarch64", rosetta=False))[0] == "ok"
    assert verdicts(check("Darwin", "x86_64", rosetta=False)) == {"architecture": "warn"}
    assert verdicts(check("Linux", "riscv64", rosetta=False)) == {"architecture": "warn"}


@pytest.mark.parametrize(
    ("system", "wsl", "version", "verdict", "hint"),
    [
        ("Windows", None, (), "fail", "wsl --install"),
        ("Linux", 1, (), "fail", "--set-version"),
        ("Linux", 2, (), "ok", ""),
        ("Linux", None, (), "ok", ""),
        ("Darwin", None, (13, 6), "warn", "softwareupdate"),
        ("Darwin", None, (15, 7), "ok", ""),
        ("Darwin", None, (26,), "warn", "softwareupdate"),
        ("Darwin", None, (26, 1), "warn", "softwareupdate"),
        ("Darwin", None, (26, 2), "ok", ""),
    ],
)
def test_system(
    system: str, wsl: int | None, version: tuple[int, ...], verdict: str, hint: str
) -> None:
    actual, actual_hint = only(python.check_system(system, wsl, version))
    assert actual == verdict
    assert hint in actual_hint


def test_glibc() -> None:
    assert only(python.check_glibc("Linux", (2, 36)))[0] == "ok"
    assert only(python.check_glibc("Linux", (2, 31)))[0] == "warn"
    assert only(python.check_glibc("Linux", ()))[0] == "fail"
    assert only(python.check_glibc("Darwin", ()))[0] == "skip"


def test_versions() -> None:
    assert release("2.19.1rc0+cu12") == (2, 19, 1)
    assert at_least("580.65.06", "580")
    assert not at_least("550.54", "550.54.14")
    assert not at_least("odd", "1")
