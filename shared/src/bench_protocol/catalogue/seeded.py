"""Seeded numbers, equal on every machine: initial weights, sample order, generated data.

Everything derives from the words of :mod:`.streams`.
"""

import hashlib
import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layers import (
    LSTM,
    BatchNorm,
    CausalAttention,
    Conv2D,
    Dense,
    Embedding,
    Layer,
    LayerNorm,
    Part,
    PlainLayer,
    Residual,
    Shape,
)
from .streams import raw_words, stream, unit_interval
from .tokens import generated_tokens
from .workloads import DataSet, Workload

__all__ = [
    "DATA_SEED",
    "DEFAULT_SEED",
    "Split",
    "Weights",
    "data_digest",
    "generated_data",
    "generated_rows",
    "initial_weights",
    "order",
    "raw_words",
    "reading_order",
    "unit_interval",
    "weights_of",
]

Weights = list[dict[str, NDArray[np.float32]]]
# Inputs (samples, *sample_shape): pictures uint8, or tokens uint16; labels int32.
Split = tuple[NDArray[Any], NDArray[np.int32]]
DEFAULT_SEED = "0" * 32
# The generated data is one fixed data set, independent of a repeat's seed.
DATA_SEED = "data"
# Side of a patch; a patch is lit where its byte is below LIT, with BRIGHTNESS times the byte.
PATTERN_PIXELS = 4
LIT, BRIGHTNESS = 32, 6
# Noise keeps this many bits less than a byte; labels are drawn at random in this many of 256.
NOISE_SHIFT = 5
WRONG_LABELS = 32
PIECE = 1 << 15
# Weights of embeddings, and kernels without a bias, have this standard deviation (Radford et al.
# 2019, GPT-2).
DEVIATION = 0.02


def initial_weights(workload: Workload, seed: str = DEFAULT_SEED) -> Weights:
    """Starting weights, one dictionary per layer (empty for a layer without weights).

    Kernels are uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio 2010), those of
    convolutions without activation, before a normalisation, in
    +-sqrt(6 / fan_in) (He et al. 2015), recurrent kernels in +-sqrt(3 / units). Biases are 0,
    except the LSTM's forget gate, which starts at 1. Normalisations have mean 0, variance 1, beta 0
    and their layer's gamma, 1 in a LayerNorm. Weights of embeddings and attention, and of dense
    layers without bias, are uniform in +-sqrt(3) 0.02, whose standard deviation is 0.02.

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
    if isinstance(layer, LayerNorm):
        return np.ones(shape, np.float32)
    if name == "bias":
        bias = np.zeros(shape, np.float32)
        if isinstance(layer, LSTM):
            bias[layer.units : 2 * layer.units] = 1.0
        return bias
    if name == "recurrent_kernel":
        limit = math.sqrt(3 / shape[0])
    elif isinstance(layer, Embedding | CausalAttention) or (
        isinstance(layer, Dense) and not layer.bias
    ):
        limit = math.sqrt(3) * DEVIATION
    else:
        normalised = isinstance(layer, Conv2D) and layer.activation == "linear"
        fan_in, fan_out = (math.prod(shape[:-2]) * channels for channels in shape[-2:])
        limit = math.sqrt(6 / (fan_in if normalised else fan_in + fan_out))
    values = np.empty(math.prod(shape), np.float32)
    words = stream(purpose, seed)
    # Draw piece by piece, because a large kernel's words do not fit into a cache.
    for start in range(0, values.size, PIECE):
        piece = values[start : start + PIECE]
        piece[:] = (2 * unit_interval(words.random_raw(piece.size)) - 1) * limit
    return values.reshape(shape)


def order(samples: int, epoch: int, seed: str = DEFAULT_SEED) -> NDArray[np.int32]:
    """Permutation of the training samples for one epoch, int32 of shape (samples,)."""
    words = raw_words(f"order/{epoch}", seed, samples)
    return np.argsort(words, kind="stable").astype(np.int32)


def reading_order(
    samples: int, epoch: int, seed: str, batch_size: int, distinct: int
) -> NDArray[np.int32]:
    """The order of a reading: as :func:`order`, but a batch repeats a few of its samples.

    Each batch keeps its first ``distinct`` samples and fills all its places with them: place i of
    the epoch has sample ``w_i mod distinct`` of its batch, with the words w of the stream
    ``repeats/{epoch}``. So a large batch is trained whole, and recomputed from a few samples with
    the numbers of their places as weights. With ``distinct = batch_size`` it is :func:`order`.

    Returns:
        int32 of shape (samples,); the samples beyond the last full batch stay as they are.
    """
    rows = order(samples, epoch, seed)
    if distinct >= batch_size:
        return rows
    whole = samples // batch_size * batch_size
    words = raw_words(f"repeats/{epoch}", seed, whole)
    places = (words % np.uint64(distinct)).astype(np.intp).reshape(-1, batch_size)
    batches = rows[:whole].reshape(-1, batch_size)
    batches[:] = np.take_along_axis(batches, places, axis=1)
    return rows


def generated_data(
    data_set: DataSet, split: str, samples: int | None = None, seed: str = DATA_SEED
) -> Split:
    """A learnable stand-in of a data set's shape: many patterns, some rare, some labels wrong.

    Each pattern belongs to a class. Rare patterns are learned late, so accuracy and loss depend on
    how many samples were trained on. Most patches are dark, which keeps the units of a first dense
    layer alive: bright pictures shift all inputs of a unit alike.

    Data that is noise by its definition stays noise: random pictures, random labels.

    Args:
        data_set: gives shape, number of classes and number of patterns.
        split: ``train``, ``validation`` or ``test``: same patterns, other samples.
        samples: number of samples; None means the whole split. Fewer are a prefix of more.
        seed: of labels, noise and patterns.

    Returns:
        As :func:`generated_rows`.
    """
    if samples is None:
        samples = int(getattr(data_set, f"{split}_samples"))
    return generated_rows(data_set, split, np.arange(samples), seed)


def generated_rows(
    data_set: DataSet, split: str, rows: NDArray[np.integer[Any]], seed: str = DATA_SEED
) -> Split:
    """The samples of :func:`generated_data` at these places, in this order, without the others.

    Args:
        rows: places in the split, integers of shape (n,).
        seed: as in :func:`generated_data`.

    Returns:
        Pictures, uint8 of shape (n, *sample_shape), and labels, int32 of shape (n,); tokens,
        uint16 of shape (n, *sample_shape), and the tokens after them, int32 of the same shape.
    """
    if data_set.tokens:
        return generated_tokens(data_set, split, rows, seed)
    prefix = f"data/{data_set.name}/{'x'.join(map(str, data_set.sample_shape))}"
    words = raw_words(f"{prefix}/{split}/labels", seed, int(rows.max(initial=-1)) + 1)[rows]
    labels = (words % np.uint64(data_set.classes)).astype(np.int32)
    noise = _stream_bytes(f"{prefix}/{split}/noise", seed, rows, math.prod(data_set.sample_shape))
    pictures = noise.reshape(len(rows), *data_set.sample_shape)
    if not data_set.noise:
        shown = _shown_patterns(words, data_set.patterns)
        wrong = (words >> np.uint64(32)) % np.uint64(256) < WRONG_LABELS
        labels = np.where(wrong, labels, shown % data_set.classes).astype(np.int32)
        pictures >>= NOISE_SHIFT
        _add_patterns(pictures, data_set.sample_shape, f"{prefix}/patterns", seed, shown)
    return pictures, labels


def _shown_patterns(words: NDArray[np.uint64], patterns: int) -> NDArray[np.int64]:
    """The pattern of each sample: patterns x u**2 rounded down, u from a word's upper 24 bits.

    Pattern k is about as frequent as 1 / sqrt(k).
    """
    upper = words >> np.uint64(40)
    return (upper * upper * np.uint64(patterns) >> np.uint64(48)).astype(np.int64)


def _add_patterns(
    pictures: NDArray[np.uint8],
    sample_shape: Shape,
    purpose: str,
    seed: str,
    shown: NDArray[np.int64],
) -> None:
    """Add to each picture its pattern: one byte a patch of 4x4 pixels and channel, cut at the
    edges. An eighth of the patches is lit."""
    height, width, *channels = sample_shape
    grid = (-(-height // PATTERN_PIXELS), -(-width // PATTERN_PIXELS), *channels)
    # Draw only the patterns that are shown: patterns of large pictures need much memory.
    needed, places = np.unique(shown, return_inverse=True)
    patches = _stream_bytes(purpose, seed, needed, math.prod(grid))
    patches = np.where(patches < LIT, patches * BRIGHTNESS, np.uint8(0))
    patches = patches.reshape(len(needed), *grid)
    # Add piece by piece, because the patterns of all pictures do not fit into a cache.
    piece = max(1, PIECE * 8 // math.prod(sample_shape))
    for start in range(0, len(shown), piece):
        part = patches[places[start : start + piece]]
        part = part.repeat(PATTERN_PIXELS, axis=1).repeat(PATTERN_PIXELS, axis=2)
        pictures[start : start + piece] += part[:, :height, :width]


def _stream_bytes(
    purpose: str, seed: str, rows: NDArray[np.integer[Any]], size: int
) -> NDArray[np.uint8]:
    """Bytes ``row * size`` to ``(row + 1) * size`` of a stream for each row, (rows, size)."""
    drawn = np.empty((len(rows), size), np.uint8)
    # Adjacent rows are drawn in one call.
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    for start, stop in pairwise([0, *breaks.tolist(), len(rows)]):
        first = int(rows[start]) * size if stop > start else 0
        count = (stop - start) * size
        words = raw_words(purpose, seed, -(-(first % 8 + count) // 8), first // 8)
        values = words.astype("<u8", copy=False).view(np.uint8)
        drawn[start:stop].reshape(-1)[:] = values[first % 8 : first % 8 + count]
    return drawn


def data_digest(*splits: Split) -> str:
    """SHA-256 over the raw arrays of a data set, lower-case hex: identifies the training data.

    Args:
        splits: inputs and labels, in the order train, validation (if there is one), test.

    For each array the shape as text (``60000x28x28x1``) and a line feed, then its values row by
    row: pictures as uint8, tokens as little-endian uint16, labels as little-endian int32.
    """
    sha = hashlib.sha256()
    for inputs, labels in splits:
        for array, kind in ((inputs, f"<u{inputs.itemsize}"), (labels, "<i4")):
            sha.update(f"{'x'.join(map(str, array.shape))}\n".encode())
            sha.update(np.ascontiguousarray(array, dtype=kind).data)
    return sha.hexdigest()
