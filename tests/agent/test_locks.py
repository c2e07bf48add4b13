"""The locks satisfy the requirements, agree with each other, and hold one build of each library."""

import itertools
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

import pytest
from deploy import locks
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "locks").glob("*.txt"))
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = (("Darwin", "arm64"), ("Linux", "x86_64"), ("Linux", "aarch64"))
PLACES = [
    {
        "os_name": "posix",
        "sys_platform": system.lower(),
        "platform_system": system,
        "platform_machine": machine,
        "python_version": python,
        "python_full_version": f"{python}.9",
    }
    for (system, machine), python in itertools.product(SYSTEMS, PYTHONS)
]
MAKEFILE = (ROOT / "Makefile").read_text()
# The extras that the Makefile installs together.
TOGETHER = re.findall(r"^(?:SECOND_)?EXTRAS [:?]= ([\w,-]+)$", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize("name", locks.requirements())
def test_a_lock_satisfies_its_requirements(name: str) -> None:
    for place in PLACES:
        pinned = locks.versions([name], place)
        for requirement in map(Requirement, locks.requirements()[name]):
            if requirement.marker is None or requirement.marker.evaluate(place):
                version = pinned.get(canonicalize_name(requirement.name))
                hint = f"{requirement} is not in locks/{name}.txt ({version}): run make locks"
                assert version, hint
                assert requirement.specifier.contains(version), hint


@pytest.mark.long
def test_uv_finds_nothing_to_change() -> None:
    assert locks.outdated() == []


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES, ids=lambda place: "-".join(list(place.values())[2:5]))
def test_frameworks_are_at_most_one_minor_version_behind(place: dict[str, str]) -> None:
    """Of what the index has for this system and Python, each resolved on its own. TensorFlow has no
    build for Python 3.14; on a Mac Apple's plug-in needs an old one."""
    machine = place["platform_machine"].replace("arm64", "aarch64")
    on_linux, python = place["sys_platform"] == "linux", place["python_version"]
    pairs = [("mlx", "mlx"), ("jax", "jax"), ("torch", "torch"), ("jax", "numpy")]
    pairs += [("tensorflow-cuda", "tensorflow")] if on_linux and python != "3.14" else []
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "-", "--no-deps"]
    command += ["--no-header", "--no-annotate", "--python-version", python, "--python-platform"]
    command.append(f"{machine}-{'manylinux_2_35' if on_linux else 'apple-darwin'}")
    names = "\n".join(package for _, package in pairs)
    oldest_mac = os.environ | {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
    done = subprocess.run(
        command, input=names, env=oldest_mac, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    newest = {pin.name: pin.version for pin in locks.pins(done.stdout)}
    for lock, package in pairs:
        pinned = locks.versions([lock], place)[package]
        ours, theirs = (Version(text).release for text in (pinned, newest[package]))
        assert (theirs[0], theirs[1] - ours[1] <= 1) == (ours[0], True), (package, newest[package])


def test_a_package_has_one_version_in_all_locks() -> None:
    """So they can be installed together."""
    together = [file for file in FILES if file.stem not in (locks.ALONE, locks.CPU_TORCH)]
    for place in PLACES:
        everything = locks.versions([file.stem for file in together], place)
        for file in together:
            assert locks.versions([file.stem], place).items() <= everything.items(), file.name


def test_pytorch_for_the_processor_has_the_other_packages_of_the_usual_one() -> None:
    """A marker that is lost leaves a version that another Python cannot install."""
    for place in PLACES:
        ours, usual = (locks.versions([name], place) for name in (locks.CPU_TORCH, "torch"))
        assert ours.pop("torch") == locks.CPU_TORCH_VERSION
        assert ours.items() <= usual.items()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_lock_has_hashes_and_no_address(file: Path) -> None:
    text = file.read_text()
    assert not re.search(r"https?:|file:|^-", text, re.MULTILINE)
    if file.stem != locks.CPU_TORCH:
        assert len(re.findall(r"\\\n    --hash", text)) >= len(locks.pins(text))
        assert len(re.findall(r"==.*\\\n    --hash", text)) == len(locks.pins(text))


@pytest.mark.parametrize("extras", TOGETHER)
def test_an_environment_has_one_build_of_cudas_libraries(extras: str) -> None:
    """The packages of cuDNN for CUDA 12 and for CUDA 13 install the same files."""
    for place in PLACES:
        pinned = locks.versions(extras.split(","), place)
        for library in ("cudnn", "nccl"):
            builds = [name for name in pinned if name.startswith(f"nvidia-{library}-cu")]
            wanted = ("cuda" in extras or "torch" in extras) and place["sys_platform"] == "linux"
            assert len(builds) == wanted, builds


def test_the_makefile_installs_six_sets_of_frameworks() -> None:
    assert len(TOGETHER) == 6


ROOT = Path(__file__).parents[2]
# From the sources, because the metadata of an editable install may be older.
OURS = {
    f"bench-{name}": tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    for name, folder in (("protocol", "shared"), ("agent", "agent"), ("server", "server"))
}
FRAMEWORKS = {"tensorflow", "tensorflow-cpu", "keras", "mlx", "jax", "torch"}


def declared(name: str) -> Iterable[str]:
    return OURS[name]["dependencies"] if name in OURS else requires(name) or ()


def installed_with(name: str) -> set[str]:
    waiting, seen, names = [(name, "")], set[tuple[str, str]](), set[str]()
    while waiting:
        name, extra = waiting.pop()
        names.add(name)
        for requirement in map(Requirement, declared(name)):
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            needed = canonicalize_name(requirement.name)
            new = {(needed, extra) for extra in ("", *requirement.extras)} - seen
            seen |= new
            waiting += new
    return names


def test_a_fresh_agent_is_small() -> None:
    """No framework (they are extras), nothing of the server's, no SciPy (143 MB)."""
    names = installed_with("bench-agent")
    assert {"numpy", "pydantic-core", "httpx", "certifi"} <= names
    assert not names & {"scipy", "bench-server", "sqlalchemy", "pyarrow", "fastapi", *FRAMEWORKS}


def test_the_search_goes_through_dependencies_of_dependencies() -> None:
    assert "starlette" in installed_with("bench-server")  # of FastAPI
