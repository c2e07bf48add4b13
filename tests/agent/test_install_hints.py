"""Install commands: never by the agent's own name."""

import itertools
from pathlib import Path

import pytest

from bench_agent import engines
from bench_agent.base import install_hints
from bench_agent.base.install_hints import FOR_CUDA_12, FOR_CUDA_13, Pip, extras_for, install_note
from bench_agent.doctor.frameworks import system_package
from bench_agent.doctor.system import uv_command


def make_checkout(folder: Path) -> Path:
    (folder / "locks").mkdir()
    (folder / "locks" / "agent.txt").touch()
    return folder


def test_hints_use_the_tools_that_are_there() -> None:
    assert Pip("/p y", has_pip=True).uninstall("x") == "'/p y' -m pip uninstall -y x"
    assert Pip("/p", has_pip=False).uninstall("x") == "uv pip uninstall --python /p x"
    for manager, need in itertools.product(("apt-get", "dnf", "pacman", "apk"), ("g++", "blas")):
        command = system_package(need, {manager: f"/bin/{manager}"}.get)
        assert command is not None
        assert command.startswith(manager)
    assert system_package("g++", {}.get) is None


def test_uv_is_fetched_where_it_is_missing() -> None:
    assert uv_command({"uv": "/bin/uv"}.get) == ("", "uv")
    fetch, uv = uv_command({}.get)
    assert fetch.endswith("-m pip install uv && ")
    assert uv.endswith("-m uv")


def test_in_a_checkout_the_sources_are_installed_at_the_tested_versions(tmp_path: Path) -> None:
    command = Pip(checkout=make_checkout(tmp_path)).install_extras("torch", "jax")
    assert command.endswith(f"install -r {tmp_path}/locks/torch.txt -r {tmp_path}/locks/jax.txt")


def test_every_framework_has_a_lock() -> None:
    for name in (*engines.names(), *FOR_CUDA_12.values(), *FOR_CUDA_13.values(), "energy"):
        assert (install_hints.CHECKOUT / "locks" / f"{name}.txt").is_file()


def test_elsewhere_what_the_extras_stand_for_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = [
        "httpx>=0.28",
        "torch>=2.6; extra == 'torch'",
        "mlx[cpu]>=0.29; sys_platform == 'linux' and extra == 'mlx'",
        "mlx>=0.29; sys_platform == 'nowhere' and extra == 'mlx'",
    ]
    monkeypatch.setattr(install_hints, "requires", lambda name: declared)
    command = Pip(checkout=tmp_path).install_extras("torch", "mlx")
    assert command.endswith("install 'torch>=2.6' 'mlx[cpu]>=0.29'")


@pytest.mark.parametrize("framework", engines.names())
def test_no_command_asks_an_index_for_the_agent(framework: str) -> None:
    for word in Pip().install_extras(framework).split():
        assert not word.strip("'").startswith(("bench-agent", "bench-protocol"))


def test_another_interpreter_gets_these_sources_and_keeps_its_versions(tmp_path: Path) -> None:
    other = Pip("/other/python", has_pip=True, checkout=tmp_path)
    assert other.install_agent() is None
    assert other.separate_environments() is None
    make_checkout(tmp_path)
    assert other.install_agent() == (
        f"/other/python -m pip install -e {tmp_path}/shared -e {tmp_path}/agent"
    )
    assert other.separate_environments() == f"make -C {tmp_path} clean install frameworks"


@pytest.mark.parametrize("checkout", [True, False])
@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_no_framework_brings_a_second_cuda(tmp_path: Path, framework: str, checkout: bool) -> None:
    """Outside of a checkout no command makes an environment with this agent."""
    if checkout:
        make_checkout(tmp_path)
    pip = Pip("/p", has_pip=True, checkout=tmp_path)
    expected = f"make -C {tmp_path} install" if checkout else None
    assert pip.install_framework(framework, cuda_12=True) == expected
    assert pip.install_cuda_13(framework, cuda_12=True) == expected
    assert pip.install_framework(framework, cuda_12=False) == pip.install_extras(framework)


def test_beside_cuda_12_the_builds_for_it_are_installed() -> None:
    pip = Pip("/p", has_pip=True)
    assert pip.install_framework("mlx", cuda_12=True) == pip.install_extras("mlx-cuda")
    everything = ("tensorflow", "mlx", "jax", "torch")
    assert extras_for(everything, cuda_12=True) == ("tensorflow-cuda", "mlx-cuda")
    assert extras_for(everything, cuda_12=False) == everything


def test_a_cpu_build_makes_room_for_that_of_cuda_13(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = ["jax[cuda13]>=0.8; extra == 'jax-cuda'", "torch>=2.6; extra == 'torch'"]
    monkeypatch.setattr(install_hints, "requires", lambda name: declared)
    pip = Pip("/p", has_pip=True, checkout=tmp_path)
    assert pip.install_cuda_13("jax", cuda_12=False) == (
        "/p -m pip uninstall -y jax && /p -m pip install 'jax[cuda13]>=0.8'"
    )
    make_checkout(tmp_path)
    assert pip.install_cuda_13("jax", cuda_12=False) == f"make -C {tmp_path} install"


def test_a_download_of_gigabytes_is_named() -> None:
    assert "gigabytes" in install_note("torch", "linux")
    assert install_note("torch", "darwin") == install_note("jax", "linux") == ""
