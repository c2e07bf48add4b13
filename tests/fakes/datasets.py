"""Small data sets in the layout of the real ones, with a manifest of their own."""

import gzip
import hashlib
import io
import struct
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import MNIST as CATALOGUE_MNIST
from bench_protocol.catalogue.workloads import DataSet
from bench_protocol.real_data import parse
from bench_protocol.real_data.manifest import DataFile, Manifest, RealData

TRAIN, TEST = 60, 20
MNIST = DataSet(
    name="mnist", sample_shape=(28, 28, 1), classes=10, train_samples=TRAIN, test_samples=TEST
)
CIFAR = DataSet(
    name="cifar-100", sample_shape=(32, 32, 3), classes=100, train_samples=TRAIN, test_samples=TEST
)


def samples(data_set: DataSet = MNIST) -> tuple[parse.Split, parse.Split]:
    """Train and test samples, pictures of one channel without their last axis."""
    splits = []
    for split in ("train", "test"):
        pictures, labels = seeded.generated_data(data_set, split)
        splits.append((pictures[..., 0] if pictures.shape[-1] == 1 else pictures, labels))
    return splits[0], splits[1]


def npz() -> bytes:
    (train_x, train_y), (test_x, test_y) = samples()
    out = io.BytesIO()
    np.savez_compressed(
        out,
        x_train=train_x,
        y_train=train_y.astype(np.uint8),
        x_test=test_x,
        y_test=test_y.astype(np.uint8),
    )
    return out.getvalue()


def idx(values: NDArray[np.uint8]) -> bytes:
    head = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return gzip.compress(head + values.tobytes(), mtime=0)


def fashion() -> dict[str, bytes]:
    (train_x, train_y), (test_x, test_y) = samples()
    return {
        "train-images-idx3-ubyte.gz": idx(train_x),
        "train-labels-idx1-ubyte.gz": idx(train_y.astype(np.uint8)),
        "t10k-images-idx3-ubyte.gz": idx(test_x),
        "t10k-labels-idx1-ubyte.gz": idx(test_y.astype(np.uint8)),
    }


def python_2_batch(pictures: NDArray[np.uint8], labels: Sequence[int]) -> bytes:
    """A batch of CIFAR-100 as Python 2 and NumPy 1 pickled it (protocol 2, byte strings)."""
    rows = pictures.transpose(0, 3, 1, 2).reshape(len(pictures), -1)
    count, width = rows.shape

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    raw = rows.tobytes()
    dtype = (
        b"cnumpy\ndtype\n" + text(b"u1") + number(0) + number(1) + b"\x87R"
        b"(" + number(3) + text(b"|") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
    )
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        + number(0) + b"\x85" + text(b"b") + b"\x87R("
        + number(1) + number(count) + number(width) + b"\x86" + dtype + b"\x89"
        + b"T" + struct.pack("<i", len(raw)) + raw + b"tb"
    )  # fmt: skip
    fine = b"](" + b"".join(map(number, labels)) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"fine_labels") + fine + b"u."


def tar(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return gzip.compress(out.getvalue(), mtime=0)


def cifar() -> bytes:
    train, test = (python_2_batch(x, y.tolist()) for x, y in samples(CIFAR))
    return tar({"cifar-100-python/train": train, "cifar-100-python/test": test})


def cifar_10() -> bytes:
    (train_x, train_y), (test_x, test_y) = samples(CIFAR)

    def records(pictures: NDArray[np.uint8], labels: NDArray[np.int32]) -> bytes:
        rows = pictures.transpose(0, 3, 1, 2).reshape(len(pictures), -1)
        return np.hstack([labels[:, None].astype(np.uint8), rows]).tobytes()

    parts = {
        f"data_batch_{n + 1}.bin": np.s_[n * TRAIN // 5 : (n + 1) * TRAIN // 5] for n in range(5)
    }
    batches = {name: records(train_x[part], train_y[part]) for name, part in parts.items()}
    batches["test_batch.bin"] = records(test_x, test_y)
    return tar({f"cifar-10-batches-bin/{name}": raw for name, raw in batches.items()})


def entry(path: str, content: bytes, *mirrors: str, other_paths: tuple[str, ...] = ()) -> DataFile:
    return DataFile(path, len(content), hashlib.sha256(content).hexdigest(), mirrors, other_paths)


def mnist_manifest(*mirrors: str, content: bytes | None = None) -> RealData:
    file = entry("mnist.npz", npz() if content is None else content, *mirrors)
    return RealData("mnist", "none", (file,), parse.mnist_npz)


def full_mnist(folder: Path) -> tuple[Manifest, tuple[parse.Split, parse.Split]]:
    """MNIST of its published size in a folder, from a few samples; its manifest and splits."""
    pictures, labels = seeded.generated_data(MNIST, "train", 32)
    splits = [
        (np.resize(pictures, (count, *MNIST.sample_shape)), np.resize(labels, count))
        for count in (CATALOGUE_MNIST.train_samples, CATALOGUE_MNIST.test_samples)
    ]
    arrays = {}
    for name, (x, y) in zip(("train", "test"), splits, strict=True):
        arrays |= {f"x_{name}": x[..., 0], f"y_{name}": y.astype(np.uint8)}
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    put(folder, "mnist.npz", out.getvalue())
    return (mnist_manifest(content=out.getvalue()),), (splits[0], splits[1])


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
