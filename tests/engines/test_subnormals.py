"""Subnormal numbers are flushed to zero in the chosen threads only."""

import platform
from threading import Thread

import numpy as np
import pytest
from tests.fakes.workloads import small

from bench_agent.engines.cpu import subnormals
from bench_protocol.catalogue import workload_named

from .conftest import Opener

only_there = pytest.mark.only_on("linux-x86_64")


def _product() -> float:
    """2**-140, or zero."""
    return float((np.full(8, 2.0**-100, np.float32) * np.full(8, 2.0**-40, np.float32))[0])


def _in_a_thread() -> float:
    products: list[float] = []
    thread = Thread(target=lambda: products.append(_product()))
    thread.start()
    thread.join()
    return products[0]


@only_there
def test_this_thread_and_those_it_starts_until_the_end() -> None:
    assert _product() == 2.0**-140
    with subnormals.flushed():
        assert (_product(), _in_a_thread()) == (0.0, 0.0)
    assert (_product(), _in_a_thread()) == (2.0**-140, 2.0**-140)


@only_there
def test_an_error_ends_it_too() -> None:
    with pytest.raises(KeyError), subnormals.flushed():
        raise KeyError
    assert _product() == 2.0**-140


def test_elsewhere_the_processor_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with subnormals.flushed():
        assert _product() == 2.0**-140


@only_there
def test_tuned_mlx_flushes_and_leaves_this_thread_alone(opened: Opener) -> None:
    import mlx.core as mx

    workload = small(workload_named("fashion-mlp"), 64)
    session = opened("mlx", workload, "tuned", 16)
    assert session.settings["subnormals"] == "flushed"
    assert _product() == 2.0**-140
    # Each stream has a thread of its own.
    streams = session._streams  # type: ignore[attr-defined]
    tiny = mx.array(2.0**-100)
    assert [mx.multiply(tiny, 2.0**-40, stream=stream).item() for stream in streams] == [
        0.0 for _ in streams
    ]
