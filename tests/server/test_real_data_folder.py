"""The folder of real data that a server has: files that are wrong, change or cannot be read."""

import logging
from pathlib import Path

import pytest
from tests.fakes import datasets

from bench_server.cli.recompute import real_data
from bench_server.recompute.real_data import RealData
from bench_server.settings import Settings

MANIFEST = (datasets.mnist_manifest(),)


def test_files_that_come_and_go_are_noticed(tmp_path: Path) -> None:
    """Else a server would start a worker again and again that has nothing to do."""
    changing = RealData(tmp_path, MANIFEST)
    assert changing.workloads == frozenset()
    file = datasets.put(tmp_path, "mnist.npz", datasets.npz())
    assert changing.workloads == {"mnist-dense", "mnist-cnn"}
    file.unlink()
    assert (changing.workloads, changing.problems) == (frozenset(), {})
    content = bytearray(datasets.npz())
    content[1000] ^= 1
    datasets.put(tmp_path, "mnist.npz", bytes(content))
    assert changing.workloads == frozenset()
    assert "mnist.npz has SHA-256" in changing.problems["mnist"]


def test_a_folder_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    """Root may read all folders, so here the name is longer than a name may be."""
    unreadable = RealData(tmp_path / ("x" * 300), MANIFEST)
    assert "mnist.npz cannot be read: File name too long" in unreadable.problems["mnist"]


def test_the_warning_names_the_setting(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert real_data(Settings()) is None
    with caplog.at_level(logging.WARNING):
        assert real_data(Settings(data_dir=tmp_path)) is not None
    assert f"BENCH_SERVER_DATA_DIR: {tmp_path} has no data set" in caplog.text
    datasets.put(tmp_path, "mnist.npz", b"other")
    with caplog.at_level(logging.WARNING):
        real_data(Settings(data_dir=tmp_path))
    assert "mnist.npz has 5 bytes instead of" in caplog.text
