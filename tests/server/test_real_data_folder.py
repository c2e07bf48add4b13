"""The folder of real data that a server has: files that are wrong, change or cannot be read."""

import logging
from pathlib import Path

import pytest
import typer
from tests.fakes import datasets

from bench_protocol.real_data.manifest import Manifest
from bench_server.cli.recompute import real_data
from bench_server.cli.setup import read_settings
from bench_server.recompute.real_data import RealData
from bench_server.settings import Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def manifest(folder: Path) -> Manifest:
    return datasets.full_mnist(folder)[0]


def test_files_that_come_and_go_are_noticed(
    tmp_path: Path, manifest: Manifest, folder: Path
) -> None:
    """Else a server would start a worker again and again that has nothing to do."""
    changing = RealData(tmp_path, manifest)
    assert changing.workloads == frozenset()
    datasets.put(tmp_path, "mnist.npz", (folder / "mnist.npz").read_bytes())
    assert changing.workloads == {"mnist-dense", "mnist-cnn"}
    (tmp_path / "mnist.npz").unlink()
    assert (changing.workloads, changing.problems) == (frozenset(), {})


def test_a_folder_that_cannot_be_read_is_a_problem(tmp_path: Path, manifest: Manifest) -> None:
    """Root may read all folders, so here the name is longer than a name may be."""
    unreadable = RealData(tmp_path / ("x" * 300), manifest)
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


def test_a_missing_folder_is_an_error_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_SERVER_DATA_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(typer.Exit):
        read_settings()
    said = capsys.readouterr().err
    assert said.startswith("bench-server: BENCH_SERVER_DATA_DIR: there is no such folder; wanted:")
    assert "BENCH_DATA_DIR=FOLDER bench-agent data fetch" in said
