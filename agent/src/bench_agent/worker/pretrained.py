"""Keras' published weights of the frozen ResNet50, if a file of them is given.

Training speed does not depend on the values of the weights, so the default is generated ones.
``BENCH_PRETRAINED`` names a file in the layout of Keras' applications, such as
``resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5``; the result says which weights it was.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench_protocol.catalogue.layers import BatchNorm, Branch, Layer, Residual
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ..base.errors import UsageProblem

Values = dict[str, NDArray[np.float32]]
VARIABLE = "BENCH_PRETRAINED"
GENERATED = "generated"


def chosen_file(environ: Mapping[str, str]) -> Path | None:
    """The file in ``BENCH_PRETRAINED``, if any.

    Raises:
        UsageProblem: it does not exist.
    """
    if not environ.get(VARIABLE):
        return None
    path = Path(environ[VARIABLE])
    if not path.is_file():
        raise UsageProblem(f"{VARIABLE} names {path}, which is no file; unset it or name one")
    return path


def with_pretrained(workload: Workload, weights: Weights, path: Path | None) -> tuple[Weights, str]:
    """Weights with the frozen layers' values from a file, and their name in the result.

    Args:
        weights: generated; arrays of frozen layers are replaced by those of the same place.
        path: an HDF5 file of Keras' ResNet50 without its top; None keeps the generated ones.

    Raises:
        UsageProblem: the file holds other layers than the workload, or h5py is missing.
    """
    if path is None:
        return weights, GENERATED
    stored = _read(path)
    filled = [dict(values) for values in weights]
    for name, values, keys in _named(workload, filled):
        arrays = stored.get(name, [])
        expected = [values[key].shape for key in keys]
        if [array.shape for array in arrays] != expected:
            shapes = [array.shape for array in arrays] or "nothing"
            raise UsageProblem(f"{path}: layer {name} should hold {expected}, it holds {shapes}")
        for key, array in zip(keys, arrays, strict=True):
            values[key] = np.asarray(array, np.float32)
    return filled, "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def _named(workload: Workload, weights: Weights) -> Iterator[tuple[str, Values, list[str]]]:
    """Keras' name of each frozen layer, the dictionary its arrays are in, and their keys there.

    ``conv1`` is the stem; block b of stage s is ``conv{s}_block{b}``, its shortcut number 0 and the
    convolutions of its main branch 1 to 3. A block with a shortcut begins a stage.
    """
    stage, block = 1, 0
    frozen = slice(workload.frozen_layers)
    for layer, shape, values in zip(
        workload.layers[frozen], workload.shapes[frozen], weights[frozen], strict=True
    ):
        if not isinstance(layer, Residual):
            if values:
                yield f"conv1_{_suffix(layer)}", values, list(values)
            continue
        stage, block = (stage + 1, 1) if layer.shortcut else (stage, block + 1)
        numbered: tuple[tuple[Branch, int], ...] = (("main", 1), ("shortcut", 0))
        for branch, first in numbered:
            for index, part in enumerate(layer.branch(branch, shape)):
                keys = [part.prefix + name for name in part.layer.weight_shapes(part.inputs)]
                number = first + index // 2  # a convolution and its normalisation share a number
                yield f"conv{stage}_block{block}_{number}_{_suffix(part.layer)}", values, keys


def _suffix(layer: Layer) -> str:
    return "bn" if isinstance(layer, BatchNorm) else "conv"


def _read(path: Path) -> dict[str, list[NDArray[np.float32]]]:
    """Arrays by layer, in Keras' order: kernel and bias, or gamma, beta, mean and variance."""
    try:
        import h5py
    except ImportError:
        raise UsageProblem(
            f"reading {path} needs h5py, which comes with Keras: pip install h5py"
        ) from None
    try:
        with h5py.File(path) as file:
            return {
                group: [np.asarray(file[group][name]) for name in file[group].attrs["weight_names"]]
                for group in file
            }
    except (OSError, KeyError) as error:
        raise UsageProblem(f"{path} is no weights file of Keras' applications: {error}") from None
