"""Data sets on this machine: search, verify, parse, split; hostile files are refused."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fakes import datasets
from tests.fakes.datasets import CIFAR, MNIST, TEST, TRAIN, put
from typer.testing import CliRunner

from bench_agent.base.errors import DataProblem
from bench_agent.cli.main import app
from bench_agent.data import inventory, load, require, sources
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.seeded import data_digest
from bench_protocol.real_data import cut, parse
from bench_protocol.real_data.manifest import MANIFEST, RealData


def write_all(folder: Path) -> tuple[RealData, ...]:
    mnist, archive, four = datasets.npz(), datasets.cifar(), datasets.fashion()
    put(folder, "mnist.npz", mnist)
    put(folder, "cifar-100-python.tar.gz", archive)
    entries = []
    for name, content in four.items():
        put(folder, f"fashion-mnist/{name}", content)
        entries.append(datasets.entry(f"fashion-mnist/{name}", content))
    other = ("cifar-100-python-target_archive",)
    tar = datasets.entry("cifar-100-python.tar.gz", archive, other_paths=other)
    return (
        datasets.mnist_manifest(content=mnist),
        RealData("fashion-mnist", "none", tuple(entries), parse.idx_gz),
        RealData("cifar-100", "none", (tar,), parse.cifar_100),
    )


def test_each_format_gives_the_samples_it_was_made_of(tmp_path: Path) -> None:
    manifest = write_all(tmp_path)
    fashion = MNIST.model_copy(update={"name": "fashion-mnist"})
    for data_set, made_of in ((MNIST, MNIST), (fashion, MNIST), (CIFAR, CIFAR)):
        train, test = load(data_set, "real", (tmp_path,), manifest)
        for split, (pictures, labels) in zip((train, test), datasets.samples(made_of), strict=True):
            assert split[0].dtype == np.uint8
            assert split[0].shape == (len(labels), *data_set.sample_shape)
            assert split[1].dtype == np.int32
            np.testing.assert_array_equal(split[0].reshape(pictures.shape), pictures)
            np.testing.assert_array_equal(split[1], labels)


def test_the_digest_is_one_whatever_the_source(tmp_path: Path) -> None:
    manifest = write_all(tmp_path / "a")
    keras = tmp_path / "keras"
    for name in ("mnist.npz", *(f"fashion-mnist/{name}" for name in datasets.fashion())):
        put(keras, name, (tmp_path / "a" / name).read_bytes())
    put(keras, "cifar-100-python-target_archive", datasets.cifar())
    fashion = MNIST.model_copy(update={"name": "fashion-mnist"})
    for data_set in (MNIST, fashion, CIFAR):
        ours, cached = (
            data_digest(*load(data_set, "real", (place, tmp_path / "none"), manifest))
            for place in (tmp_path / "a", keras)
        )
        assert ours == cached
    # The same pictures in another container are the same data.
    assert data_digest(*load(MNIST, "real", (keras,), manifest)) == data_digest(
        *load(fashion, "real", (keras,), manifest)
    )


def test_the_last_training_samples_are_for_validation(tmp_path: Path) -> None:
    manifest = write_all(tmp_path)
    split = MNIST.model_copy(
        update={"train_samples": 45, "validation_samples": 15, "sample_shape": (28, 28)}
    )
    train, validation, test = load(split, "real", (tmp_path,), manifest)
    (pictures, labels), _ = datasets.samples()
    assert (len(train[1]), len(validation[1]), len(test[1])) == (45, 15, TEST)
    np.testing.assert_array_equal(validation[0], pictures[45:])
    np.testing.assert_array_equal(train[1], labels[:45])


def test_generated_data_needs_no_files() -> None:
    split = MNIST.model_copy(update={"validation_samples": 7})
    assert [len(labels) for _, labels in load(split, "generated", ())] == [TRAIN, 7, TEST]


def test_missing_data_names_folder_command_and_the_way_out(tmp_path: Path) -> None:
    manifest = write_all(tmp_path / "other")
    with pytest.raises(DataProblem) as raised:
        load(MNIST, "real", (tmp_path / "data", tmp_path / "keras"), manifest)
    for part in ("data fetch mnist", str(tmp_path / "data"), "BENCH_DATA_DIR", "--data generated"):
        assert part in str(raised.value)
    with pytest.raises(DataProblem, match="no real data set"):
        load(MNIST.model_copy(update={"name": "random-pictures"}), "real", (tmp_path,), manifest)


def test_all_that_is_missing_is_said_before_a_run(tmp_path: Path) -> None:
    manifest = write_all(tmp_path / "all")
    require(("mnist", "cifar-100"), (tmp_path / "all",), manifest)
    with pytest.raises(DataProblem) as raised:
        require(("mnist", "cifar-100"), (tmp_path / "none",), manifest)
    assert "data fetch mnist" in str(raised.value)
    assert "data fetch cifar-100" in str(raised.value)


def test_a_wrong_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    parsed: list[bytes] = []
    (right,) = write_all(tmp_path)[:1]
    watched = replace(right, parse=lambda content: parsed.append(content))
    for wrong, reason in ((b"short", "bytes instead of"), (bytes(right.size_bytes), "SHA-256")):
        put(tmp_path, "mnist.npz", wrong)
        with pytest.raises(DataProblem, match=reason):
            load(MNIST, "real", (tmp_path,), (watched,))
    assert parsed == []
    # A right copy further down the list is taken all the same.
    put(tmp_path / "keras", "mnist.npz", datasets.npz())
    assert load(MNIST, "real", (tmp_path, tmp_path / "keras"), (right,))


def test_the_folder_is_chosen_by_the_environment(tmp_path: Path) -> None:
    environ = {"BENCH_HOME": str(tmp_path / "home"), "KERAS_HOME": str(tmp_path / "k")}
    assert sources.folders(environ) == (tmp_path / "home" / "data", tmp_path / "k" / "datasets")
    environ["BENCH_DATA_DIR"] = str(tmp_path / "d")
    assert sources.data_folder(environ) == tmp_path / "d"


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_asks_for_more_than_arrays_is_refused(tmp_path: Path, protocol: int) -> None:
    planted = tmp_path / "planted"
    batch = pickle.dumps({b"data": Evil(planted), b"fine_labels": []}, protocol)
    archive = datasets.tar({"cifar-100-python/train": batch, "cifar-100-python/test": batch})
    with pytest.raises(DataProblem, match="refused"):
        parse.cifar_100(archive)
    assert not planted.exists()


@pytest.mark.parametrize(
    "name", ["os\nsystem", "builtins\neval", "builtins\ngetattr", "numpy\nload", "numpy.core\nos"]
)
def test_nothing_else_can_be_named(name: str) -> None:
    batch = b"\x80\x02c" + name.encode() + b"\n."
    with pytest.raises(DataProblem, match="refused"):
        parse.cifar_100(datasets.tar({"cifar-100-python/train": batch}))


def test_an_archive_writes_nothing_and_its_links_are_not_followed(tmp_path: Path) -> None:
    secret = put(tmp_path, "secret", b"\x80\x02}.")
    right = datasets.cifar()
    outside = {"../../escaped": b"x", "/tmp/trainmark-escaped": b"x"}
    batches = {f"cifar-100-python/{name}": datasets.python_2_batch(*datasets.samples(CIFAR)[0])
               for name in ("train", "test")}  # fmt: skip
    assert len(parse.cifar_100(datasets.tar(outside | batches)).train[1]) == TRAIN
    assert not Path("/tmp/trainmark-escaped").exists()
    linked = datasets.tar({}, {"cifar-100-python/train": str(secret)})
    with pytest.raises(DataProblem, match="not a plain file"):
        parse.cifar_100(linked)
    with pytest.raises(DataProblem):
        parse.cifar_100(right[: len(right) // 2])


@pytest.mark.parametrize(
    "content",
    [b"", b"\x1f\x8b", datasets.idx(np.zeros((2, 3), np.uint8))[:-9], datasets.npz()[:100]],
)
def test_malformed_files_are_one_kind_of_error(content: bytes) -> None:
    with pytest.raises(DataProblem):
        parse.idx_gz(content, content, content, content)
    with pytest.raises(DataProblem):
        parse.mnist_npz(content)
    with pytest.raises(DataProblem):
        parse.cifar_100(content)


def test_pictures_and_labels_must_fit_together_and_the_data_set() -> None:
    four = list(datasets.fashion().values())
    with pytest.raises(DataProblem, match="labels for"):
        parse.idx_gz(four[0], four[3], four[2], four[3])
    arrays = parse.idx_gz(*four)
    for change, reason in (
        ({"train_samples": TRAIN + 1}, "samples"),
        ({"sample_shape": (32, 32, 3)}, "shape"),
        ({"classes": 3}, "label"),
    ):
        with pytest.raises(DataProblem, match=reason):
            cut(arrays, MNIST.model_copy(update=change))


def test_cifar_10_is_read_from_its_binary_records() -> None:
    content = datasets.cifar_10()
    found = parse.cifar_10(content)
    for split, right in zip((found.train, found.test), datasets.samples(CIFAR), strict=True):
        assert all(np.array_equal(one, other) for one, other in zip(split, right, strict=True))
    torn = {f"cifar-10-batches-bin/data_batch_{n}.bin": b"\x01" * 100 for n in range(1, 6)}
    for wrong in (content[: len(content) // 2], datasets.tar({}), datasets.tar(torn)):
        with pytest.raises(DataProblem):
            parse.cifar_10(wrong)


def test_the_manifest_covers_the_catalogue() -> None:
    for real in MANIFEST:
        for file in real.files:
            assert len(file.sha256) == 64
            assert file.mirrors
    by_name = {real.name for real in MANIFEST}
    sets = [workload.data_set for workload in CATALOGUE]
    assert {one.name for one in sets if not (one.noise or one.tokens)} == by_name


def test_the_list_says_what_is_here(tmp_path: Path) -> None:
    manifest = write_all(tmp_path / "data")
    (tmp_path / "data" / "fashion-mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    places = (tmp_path / "data", tmp_path / "keras")
    mnist, fashion, _ = inventory.list_document(manifest, places)["data_sets"]
    assert mnist["files"] == {"mnist.npz": str(tmp_path / "data" / "mnist.npz")}
    assert list(fashion["files"].values()).count(None) == 1


def test_the_command_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    listed = CliRunner().invoke(app, ["data", "list", "--json"])
    document = json.loads(listed.stdout)
    assert (listed.exit_code, document["folder"]) == (0, str(tmp_path))
    assert [item["name"] for item in document["data_sets"]] == [real.name for real in MANIFEST]
