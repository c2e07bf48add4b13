"""The real data sets: their files, with size, SHA-256 and where to get them.

Sources: sizes and digests of MNIST and CIFAR-100 are in Keras' loaders (keras/src/datasets); those
of Fashion-MNIST, for which Keras has none, agree in many independent loaders. The host of CIFAR-100
moved from www to cave.cs.toronto.edu in 2026 and is slow at times.
"""

from collections.abc import Callable
from dataclasses import dataclass

from . import parse

KERAS_MIRROR = "https://storage.googleapis.com/tensorflow/tf-keras-datasets"
ZALANDO_MIRROR = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"


@dataclass(frozen=True)
class DataFile:
    """A file as published.

    ``path`` is below the data folder, whose layout is that of Keras' cache; ``other_paths`` are
    further names under which Keras keeps it.
    """

    path: str
    size_bytes: int
    sha256: str
    mirrors: tuple[str, ...]
    other_paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class RealData:
    """A data set. ``parse`` takes the contents of ``files``, in their order."""

    name: str
    licence: str
    files: tuple[DataFile, ...]
    parse: Callable[..., parse.Arrays]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


Manifest = tuple[RealData, ...]


def _fashion_file(name: str, size_bytes: int, sha256: str) -> DataFile:
    mirrors = (f"{KERAS_MIRROR}/{name}", f"{ZALANDO_MIRROR}/{name}")
    return DataFile(f"fashion-mnist/{name}", size_bytes, sha256, mirrors)


MANIFEST: Manifest = (
    RealData(
        name="mnist",
        licence="CC BY-SA 3.0",
        files=(
            DataFile(
                path="mnist.npz",
                size_bytes=11_490_434,
                sha256="731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
                mirrors=(f"{KERAS_MIRROR}/mnist.npz",),
            ),
        ),
        parse=parse.mnist_npz,
    ),
    RealData(
        name="fashion-mnist",
        licence="MIT",
        files=(
            _fashion_file(
                "train-images-idx3-ubyte.gz",
                26_421_880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            _fashion_file(
                "train-labels-idx1-ubyte.gz",
                29_515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            _fashion_file(
                "t10k-images-idx3-ubyte.gz",
                4_422_102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            _fashion_file(
                "t10k-labels-idx1-ubyte.gz",
                5_148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ),
        parse=parse.idx_gz,
    ),
    RealData(
        name="cifar-100",
        licence="none stated; cite Krizhevsky 2009",
        files=(
            DataFile(
                path="cifar-100-python.tar.gz",
                size_bytes=169_001_437,
                sha256="85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
                mirrors=(
                    "https://cave.cs.toronto.edu/kriz/cifar-100-python.tar.gz",
                    "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
                    "https://ossci-datasets.s3.amazonaws.com/cifar-100-python.tar.gz",
                ),
                other_paths=("cifar-100-python-target_archive",),
            ),
        ),
        parse=parse.cifar_100,
    ),
    RealData(
        name="cifar-10",
        licence="none stated; cite Krizhevsky 2009",
        files=(
            DataFile(
                path="cifar-10-binary.tar.gz",
                size_bytes=170_052_171,
                sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                mirrors=(
                    "https://cave.cs.toronto.edu/kriz/cifar-10-binary.tar.gz",
                    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                ),
            ),
        ),
        parse=parse.cifar_10,
    ),
)


def real_data_named(name: str, manifest: Manifest = MANIFEST) -> RealData | None:
    return next((item for item in manifest if item.name == name), None)
