"""Data sets: manifest, location, download and arrays of real data; generated data."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench_protocol import seeded
from bench_protocol.matrix import DataKind
from bench_protocol.workloads import DataSet

from ..base.errors import DataProblem
from . import sources
from .manifest import MANIFEST, RealData, real_data_named
from .parse import Arrays, Split

Manifest = tuple[RealData, ...]


def load(
    data_set: DataSet,
    kind: DataKind,
    places: Sequence[Path] | None = None,
    manifest: Manifest = MANIFEST,
) -> tuple[Split, ...]:
    """A workload's samples, all of them.

    Args:
        places: folders to look for real data in; None reads the environment.

    Returns:
        Pictures uint8 (samples, *sample_shape) and labels int32 (samples,) of the splits train,
        validation (if the data set has one) and test: what ``seeded.data_digest`` takes.

    Raises:
        DataProblem: real data is missing, wrong, or not of the data set's shape.
    """
    if kind == "generated":
        names = (
            ("train", "validation", "test") if data_set.validation_samples else ("train", "test")
        )
        return tuple(seeded.generated_data(data_set, name) for name in names)
    real = _real(data_set.name, manifest)
    return cut(real.parse(*sources.contents(real, places or sources.folders())), data_set)


def require(
    names: Iterable[str], places: Sequence[Path] | None = None, manifest: Manifest = MANIFEST
) -> None:
    """Verify the files of data sets before any long work.

    Raises:
        DataProblem: one is missing or wrong; the message says how to fix each.
    """
    problems: list[str] = []
    for name in names:
        try:
            sources.contents(_real(name, manifest), places or sources.folders())
        except DataProblem as problem:
            problems.append(str(problem))
    if problems:
        raise DataProblem("\n".join(problems))


def _real(name: str, manifest: Manifest) -> RealData:
    data = real_data_named(name, manifest)
    if data is None:
        raise DataProblem(f"there is no real data set {name!r}; take --data generated")
    return data


def cut(arrays: Arrays, data_set: DataSet) -> tuple[Split, ...]:
    """Split published samples: training in order, the last of them for validation, then test.

    Raises:
        DataProblem: there are too few samples, or they have another shape.
    """
    first, validation = data_set.train_samples, data_set.validation_samples
    parts = [_part(arrays.train, 0, first, data_set)]
    if validation:
        parts.append(_part(arrays.train, first, validation, data_set))
    return (*parts, _part(arrays.test, 0, data_set.test_samples, data_set))


def _part(split: Split, start: int, count: int, data_set: DataSet) -> Split:
    stop = start + count
    pictures, labels = split[0][start:stop], split[1][start:stop]
    if len(labels) < count:
        raise DataProblem(
            f"{data_set.name} has {len(split[1]):,} samples, {start + count:,} needed"
        )
    if int(labels.max()) >= data_set.classes:
        raise DataProblem(f"{data_set.name} has a label {labels.max()} of {data_set.classes}")
    try:
        return pictures.reshape(count, *data_set.sample_shape), labels
    except ValueError:
        shape = pictures.shape[1:]
        raise DataProblem(
            f"{data_set.name} has samples of shape {shape}, not {data_set.sample_shape}"
        ) from None
