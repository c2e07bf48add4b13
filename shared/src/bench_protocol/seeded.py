"""Seeded numbers, equal on every machine: initial weights, sample order, generated data.

Everything derives from the raw 64-bit output of Philox4x64-10 (Salmon et al. 2011) by the
arithmetic below; NumPy's distributions are not used, because they may change between versions.
A stream's key is the first 16 bytes, little-endian, of SHA-256("trainmark/v1/" purpose "/" seed);
its counter starts at zero.
"""

import hashlib
import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layers import LSTM, BatchNorm, Conv2D, Layer, Part, PlainLayer, Residual, Shape
from .workloads import DataSet, Workload

Weights = list[dict[str, NDArray[np.float32]]]
DEFAULT_SEED = "0" * 32
# The generated data is one fixed data set, independent of a repeat's seed.
DATA_SEED = "data"
PATTERN_PIXELS = 4
PIECE = 1 << 15


def raw_words(purpose: str, seed: str, count: int, first: int = 0) -> NDArray[np.uint64]:
    """``count`` raw 64-bit words of one stream, from word ``first`` on."""
    # A counter makes four words.
    words = _stream(purpose, seed, first // 4).random_raw(first % 4 + count)
    return np.asarray(words, dtype=np.uint64)[first % 4 :]


def _stream(purpose: str, seed: str, counter: int = 0) -> np.random.Philox:
    key = hashlib.sha256(f"trainmark/v1/{purpose}/{seed}".encode()).digest()[:16]
    return np.random.Philox(key=int.from_bytes(key, "little"), counter=counter)


def unit_interval(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Upper 24 bits of each word as a multiple of 2**-24 in [0, 1)."""
    return (words >> np.uint64(40)).astype(np.float64) * 2.0**-24


def initial_weights(workload: Workload, seed: str = DEFAULT_SEED) -> Weights:
    """Starting weights, one dictionary per layer (empty for a layer without weights).

    Kernels are uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio 2010), those of
    convolutions without activation, before a normalisation, in
    +-sqrt(6 / fan_in) (He et al. 2015), recurrent kernels in +-sqrt(3 / units). Biases are 0,
    except the LSTM's forget gate, which starts at 1. Normalisations have mean 0, variance 1, beta 0
    and their layer's gamma.

    Returns:
        float32 arrays in the layouts of :mod:`.layers`.
    """
    return [
        _layer_weights(layer, inputs, f"weights/{index}/", seed)
        for index, (layer, inputs) in enumerate(
            zip(workload.layers, workload.shapes[:-1], strict=True)
        )
    ]


def _layer_weights(
    layer: Layer, inputs: Shape, purpose: str, seed: str
) -> dict[str, NDArray[np.float32]]:
    if isinstance(layer, Residual):
        return {
            part.prefix + name: value
            for part in layer.parts(inputs)
            for name, value in _layer_weights(
                part.layer, part.inputs, purpose + part.prefix, seed
            ).items()
        }
    return {
        name: _tensor(layer, name, shape, purpose + name, seed)
        for name, shape in layer.weight_shapes(inputs).items()
    }


def weights_of(part: Part, values: dict[str, NDArray[np.float32]]) -> dict[str, Any]:
    """The weights of one layer of a residual block, under the layer's own names."""
    return {name: values[part.prefix + name] for name in part.layer.weight_shapes(part.inputs)}


def _tensor(
    layer: PlainLayer, name: str, shape: Shape, purpose: str, seed: str
) -> NDArray[np.float32]:
    if isinstance(layer, BatchNorm):
        start = {"gamma": layer.gamma, "beta": 0.0, "mean": 0.0, "variance": 1.0}[name]
        return np.full(shape, start, np.float32)
    if name == "bias":
        bias = np.zeros(shape, np.float32)
        if isinstance(layer, LSTM):
            bias[layer.units : 2 * layer.units] = 1.0
        return bias
    if name == "recurrent_kernel":
        limit = math.sqrt(3 / shape[0])
    else:
        normalised = isinstance(layer, Conv2D) and layer.activation == "linear"
        fan_in, fan_out = (math.prod(shape[:-2]) * channels for channels in shape[-2:])
        limit = math.sqrt(6 / (fan_in if normalised else fan_in + fan_out))
    values = np.empty(math.prod(shape), np.float32)
    stream = _stream(purpose, seed)
    # Piece by piece: a large kernel's words do not fit into a cache.
    for start in range(0, values.size, PIECE):
        piece = values[start : start + PIECE]
        piece[:] = (2 * unit_interval(stream.random_raw(piece.size)) - 1) * limit
    return values.reshape(shape)


def order(samples: int, epoch: int, seed: str = DEFAULT_SEED) -> NDArray[np.int32]:
    """Permutation of the training samples for one epoch, int32 of shape (samples,)."""
    words = raw_words(f"order/{epoch}", seed, samples)
    return np.argsort(words, kind="stable").astype(np.int32)


def generated_data(
    data_set: DataSet, split: str, samples: int | None = None
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Learnable data in a data set's shape: a coarse pattern per class under noise. A data set
    defined as noise stays noise: random pictures, random labels.

    Args:
        data_set: gives shape and number of classes.
        split: ``train``, ``validation`` or ``test``: same patterns, other samples.
        samples: number of samples; None means the whole split. Fewer are a prefix of more.

    Returns:
        Pictures, uint8 of shape (samples, *sample_shape), and labels, int32 of shape (samples,).
    """
    if samples is None:
        samples = int(getattr(data_set, f"{split}_samples"))
    return generated_rows(data_set, split, np.arange(samples))


def generated_rows(
    data_set: DataSet, split: str, rows: NDArray[np.integer[Any]], seed: str = DATA_SEED
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The samples of :func:`generated_data` at these places, in this order, without the others.

    Args:
        rows: places in the split, integers of shape (n,).

    Returns:
        Pictures, uint8 of shape (n, *sample_shape), and labels, int32 of shape (n,).
    """
    prefix = f"data/{data_set.name}/{'x'.join(map(str, data_set.sample_shape))}"
    draws = raw_words(f"{prefix}/{split}/labels", seed, int(rows.max(initial=-1)) + 1)
    labels = (draws % np.uint64(data_set.classes)).astype(np.int32)[rows]
    noise = _noise(f"{prefix}/{split}/noise", seed, rows, math.prod(data_set.sample_shape))
    pictures = noise.reshape(len(rows), *data_set.sample_shape)
    if not data_set.noise:
        pictures >>= 1
        pictures += _patterns(data_set, f"{prefix}/patterns", seed)[labels] >> 1
    return pictures, labels


def _noise(purpose: str, seed: str, rows: NDArray[np.integer[Any]], size: int) -> NDArray[np.uint8]:
    """Bytes ``row * size`` to ``(row + 1) * size`` of a stream for each row, (rows, size)."""
    noise = np.empty((len(rows), size), np.uint8)
    # Rows after each other are drawn in one call.
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    for start, stop in pairwise([0, *breaks.tolist(), len(rows)]):
        first = int(rows[start]) * size if stop > start else 0
        count = (stop - start) * size
        words = raw_words(purpose, seed, -(-(first % 8 + count) // 8), first // 8)
        drawn = words.astype("<u8", copy=False).view(np.uint8)
        noise[start:stop].reshape(-1)[:] = drawn[first % 8 : first % 8 + count]
    return noise


def data_digest(*splits: tuple[NDArray[np.uint8], NDArray[np.int32]]) -> str:
    """SHA-256 over the raw arrays of a data set, lower-case hex: identifies the training data.

    Args:
        splits: pictures and labels, in the order train, validation (if there is one), test.

    For each array the shape as text (``60000x28x28x1``) and a line feed, then its values row by
    row: pictures as uint8, labels as little-endian int32.
    """
    sha = hashlib.sha256()
    for pictures, labels in splits:
        for array, kind in ((pictures, "u1"), (labels, "<i4")):
            sha.update(f"{'x'.join(map(str, array.shape))}\n".encode())
            sha.update(np.ascontiguousarray(array, dtype=kind).data)
    return sha.hexdigest()


def _patterns(data_set: DataSet, purpose: str, seed: str) -> NDArray[np.uint8]:
    """One random pattern a class, uint8 of shape (classes, *sample_shape), 4 pixels a patch."""
    height, width, *channels = data_set.sample_shape
    rows, columns = -(-height // PATTERN_PIXELS), -(-width // PATTERN_PIXELS)
    coarse_shape = (data_set.classes, rows, columns, *channels)
    words = raw_words(purpose, seed, math.prod(coarse_shape))
    coarse = (words >> np.uint64(56)).astype(np.uint8).reshape(coarse_shape)
    full = coarse.repeat(PATTERN_PIXELS, axis=1).repeat(PATTERN_PIXELS, axis=2)
    return full[:, :height, :width]
