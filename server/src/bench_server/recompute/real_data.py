"""The real data sets of ``BENCH_SERVER_DATA_DIR``: what sessions on real data are recomputed on."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from bench_protocol import seeded
from bench_protocol.catalogue import CATALOGUE
from bench_protocol.errors import DataProblem
from bench_protocol.real_data import cut, files
from bench_protocol.real_data.manifest import MANIFEST, Manifest, real_data_named
from bench_protocol.real_data.parse import Split
from bench_protocol.workloads import Workload


class RealSplit(NamedTuple):
    """The training samples of a workload, and the digest of all its samples."""

    train: Split
    digest: str


class RealData:
    """The data sets of a folder, which has the layout of the agent's ``BENCH_DATA_DIR``.

    Files are read whole, and their size and SHA-256 are checked, at the first question and whenever
    a workload's samples are read.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest = MANIFEST,
        catalogue: Sequence[Workload] = CATALOGUE,
    ) -> None:
        self._places = (folder,)
        self._manifest = manifest
        self._catalogue = catalogue
        self._last: tuple[str, RealSplit] | None = None
        self._lock = Lock()

    @cached_property
    def problems(self) -> dict[str, str]:
        """Why a data set that is in the folder cannot be used, by its name."""
        return {name: problem for name, problem in self._looked.items() if problem}

    @cached_property
    def workloads(self) -> frozenset[str]:
        """The workloads whose real data is here."""
        return frozenset(
            workload.name
            for workload in self._catalogue
            if self._looked.get(workload.data_set.name) == ""
        )

    @cached_property
    def _looked(self) -> dict[str, str]:
        """The problem of each data set that has a file here, empty for none."""
        looked = {}
        for data in self._manifest:
            if not files.is_there(data, self._places):
                continue
            try:
                files.contents(data, self._places)
                looked[data.name] = ""
            except DataProblem as problem:
                looked[data.name] = str(problem)
        return looked

    def samples(self, workload: Workload) -> RealSplit:
        """The samples of a workload; those of the last one stay in memory.

        Raises:
            DataProblem: they are not here, or no longer.
        """
        with self._lock:
            if self._last is None or self._last[0] != workload.digest:
                self._last = None
                self._last = workload.digest, self._read(workload)
            return self._last[1]

    def _read(self, workload: Workload) -> RealSplit:
        data = real_data_named(workload.data_set.name, self._manifest)
        if data is None:
            raise DataProblem(f"there is no real data set {workload.data_set.name!r}")
        arrays = data.parse(*files.contents(data, self._places))
        splits = cut(arrays, workload.data_set)
        return RealSplit(splits[0], seeded.data_digest(*splits))
