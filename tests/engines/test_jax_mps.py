"""JAX on Apple's GPU through jax-mps: a stand-in for ``jax.devices``. It has never run on a Mac."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fakes.workloads import TINY, cell_of

from bench_agent.engines.jax import engine as module
from bench_agent.engines.jax.engine import Jax
from bench_protocol.catalogue.matrix import Cell, Device

from .conftest import installed

GPU = SimpleNamespace(platform="mps", device_kind="Apple M5 Max", id=0)
ON_METAL = {"device": Device(kind="metal")}


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    installed("jax")
    import jax

    noted: dict[str, Any] = {}

    def devices(platform: str) -> list[Any]:
        if platform != "mps":
            raise RuntimeError(f"Unknown backend {platform}")
        return [GPU]

    for name in ("JAX_PLATFORMS", "MLX_ENABLE_TF32", "XLA_PYTHON_CLIENT_PREALLOCATE"):
        monkeypatch.setenv(name, "")  # restored after the test
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(module, "find_spec", lambda name: name == "jax_plugins.mps" or None)
    monkeypatch.setattr(jax, "devices", devices)
    monkeypatch.setattr(jax, "config", SimpleNamespace(update=noted.__setitem__))
    return noted


def on_metal(**changes: Any) -> Cell:
    return cell_of(TINY, "jax").model_copy(update=ON_METAL | changes)


def test_its_device_is_metal(config: dict[str, Any]) -> None:
    gpu, cpu = Jax().devices()
    assert (gpu.kind, gpu.index, gpu.name) == ("metal", 0, "Apple M5 Max")
    assert cpu.kind == "cpu"
    assert os.environ["JAX_PLATFORMS"] == "mps,cpu"


def test_a_metal_cell_gets_it_and_no_tf32(config: dict[str, Any]) -> None:
    Jax().load(TINY, on_metal())
    assert config["jax_default_device"] is GPU
    assert config["jax_default_matmul_precision"] == "float32"
    assert os.environ["MLX_ENABLE_TF32"] == "0"


def test_a_second_device_is_not_there(config: dict[str, Any]) -> None:
    with pytest.raises(LookupError, match="sees 1 of this kind"):
        Jax().load(TINY, on_metal(device=Device(kind="metal", index=1)))


def test_a_plug_in_that_does_not_work_leaves_the_cpu(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import jax

    def devices(platform: str) -> list[Any]:
        raise RuntimeError("planted: no Metal GPU")

    monkeypatch.setattr(jax, "devices", devices)
    (cpu,) = Jax().devices()
    assert cpu.kind == "cpu"
    assert config["jax_platforms"] == "cpu"
    assert "planted: no Metal GPU" in capsys.readouterr().err
    with pytest.raises(LookupError, match="planted"):
        Jax().load(TINY, on_metal())


@pytest.mark.parametrize("absent", [lambda name: None, lambda name: __import__("no_such_module")])
def test_without_the_plug_in_a_mac_has_the_cpu(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, absent: Any
) -> None:
    monkeypatch.setattr(module, "find_spec", absent)
    assert [device.kind for device in Jax().devices()] == ["cpu"]
    assert os.environ["JAX_PLATFORMS"] == "cpu"
