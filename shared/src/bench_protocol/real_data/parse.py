"""Parse the files of data sets into arrays. The bytes were verified before (:mod:`.files`).

Nothing is unpacked to disk, and a pickle can create only NumPy arrays and plain containers.
"""

import gzip
import io
import math
import pickle
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import IO, Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataProblem

Split = tuple[NDArray[np.uint8], NDArray[np.int32]]
"""Pictures, uint8 (samples, ...), and labels, int32 (samples,)."""

IDX_UINT8 = b"\x00\x00\x08"
# The function that NumPy's pickles call to make an array, by its name before and since NumPy 2.
RECONSTRUCT: Any = np.empty(0).__reduce__()[0]
ARRAY_PARTS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): RECONSTRUCT,
}
P = ParamSpec("P")


@dataclass(frozen=True)
class Arrays:
    """A data set as published, before it is split for a workload."""

    train: Split
    test: Split


def _advising(parser: Callable[P, Arrays]) -> Callable[P, Arrays]:
    """Turn every error of a parser into a DataProblem."""

    @wraps(parser)
    def parse(*args: P.args, **kwargs: P.kwargs) -> Arrays:
        try:
            return parser(*args, **kwargs)
        except DataProblem:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"[:200]
            raise DataProblem(f"the file's content is not of the form expected ({what})") from error

    return parse


@_advising
def mnist_npz(content: bytes) -> Arrays:
    """``mnist.npz`` as Keras publishes it: x_train, y_train, x_test, y_test.

    Raises:
        DataProblem: the content is not of that form.
    """
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return Arrays(
            _split(arrays["x_train"], arrays["y_train"]), _split(arrays["x_test"], arrays["y_test"])
        )


@_advising
def idx_gz(train_x: bytes, train_y: bytes, test_x: bytes, test_y: bytes) -> Arrays:
    """Four files in LeCun's IDX format, compressed.

    Raises:
        DataProblem: the content is not of that form.
    """
    return Arrays(_split(_idx(train_x), _idx(train_y)), _split(_idx(test_x), _idx(test_y)))


@_advising
def cifar_100(content: bytes) -> Arrays:
    """The archive of CIFAR-100's Python version; labels are the hundred fine ones.

    Raises:
        DataProblem: the content is not of that form, or its pickle asks for anything but arrays.
    """
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        return Arrays(
            _cifar(archive, "cifar-100-python/train"), _cifar(archive, "cifar-100-python/test")
        )


@_advising
def cifar_10(content: bytes) -> Arrays:
    """The archive of CIFAR-10's binary version: a record is a label and 3 x 32 x 32 bytes.

    Raises:
        DataProblem: the content is not of that form.
    """
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        return Arrays(
            _records(archive, [f"data_batch_{number}.bin" for number in range(1, 6)]),
            _records(archive, ["test_batch.bin"]),
        )


def _idx(content: bytes) -> NDArray[np.uint8]:
    raw = gzip.decompress(content)
    if raw[:3] != IDX_UINT8:
        raise DataProblem("the file is not in IDX format with bytes as values")
    dimensions = raw[3]
    start = 4 + 4 * dimensions
    shape = tuple(int(size) for size in np.frombuffer(raw[4:start], ">u4"))
    if len(raw) != start + math.prod(shape):
        raise DataProblem(f"the IDX file says shape {shape} and holds {len(raw) - start} values")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def _records(archive: tarfile.TarFile, names: list[str]) -> Split:
    raw = b"".join(_file(archive, f"cifar-10-batches-bin/{name}").read() for name in names)
    records = np.frombuffer(raw, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
    pictures = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return _split(pictures, records[:, 0])


def _file(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    member = archive.getmember(name)
    file = archive.extractfile(member) if member.isreg() else None
    if file is None:
        raise DataProblem(f"{name} in the archive is not a plain file")
    return file


def _cifar(archive: tarfile.TarFile, name: str) -> Split:
    batch = _ArraysOnly(_file(archive, name), encoding="bytes").load()
    # Channels first, each row 3 x 32 x 32.
    pictures = np.asarray(batch[b"data"]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return _split(pictures, np.asarray(batch[b"fine_labels"]))


class _ArraysOnly(pickle.Unpickler):
    """Unpickles arrays in plain containers, nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ARRAY_PARTS[module, name]
        except KeyError:
            raise DataProblem(f"the pickle asks for {module}.{name}: refused") from None


def _split(pictures: NDArray[Any], labels: NDArray[Any]) -> Split:
    if pictures.dtype != np.uint8:
        raise DataProblem(f"pictures are {pictures.dtype}, not uint8")
    if labels.dtype.kind not in "iu" or labels.shape != pictures.shape[:1]:
        raise DataProblem(f"{labels.shape} {labels.dtype} labels for {len(pictures)} pictures")
    return np.ascontiguousarray(pictures), labels.astype(np.int32)
