"""Data sets on this machine: location and download of real data; generated data."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.matrix import DataKind
from bench_protocol.catalogue.workloads import DataSet
from bench_protocol.real_data import cut
from bench_protocol.real_data.manifest import MANIFEST, Manifest, RealData, real_data_named
from bench_protocol.real_data.parse import Split

from ..base.errors import DataProblem
from . import sources


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
    """Verify the files of data sets before any long work, or raise ``DataProblem`` with the fix."""
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
