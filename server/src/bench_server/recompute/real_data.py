"""The real data sets of ``BENCH_SERVER_DATA_DIR``, on which sessions are recomputed."""

import logging
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from bench_protocol.base.errors import DataProblem
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.real_data import cut, files
from bench_protocol.real_data.manifest import MANIFEST, Manifest, real_data_named
from bench_protocol.real_data.manifest import RealData as DataSetFiles
from bench_protocol.real_data.parse import Split

logger = logging.getLogger(__name__)


class RealSplit(NamedTuple):
    """The training samples of a workload, and the digest of all its samples."""

    train: Split
    digest: str


class _Checked(NamedTuple):
    """The problem of a data set's files when they had these stamps; empty without a problem."""

    stamps: tuple[str, ...]
    problem: str


class RealData:
    """The data sets of a folder, which has the layout of the agent's ``BENCH_DATA_DIR``.

    Files are read whole, and size and SHA-256 checked, at first, after a change of size or time,
    and whenever a workload's samples are read.
    """

    def __init__(
        self, folder: Path, manifest: Manifest = MANIFEST, catalogue: Sequence[Workload] = CATALOGUE
    ) -> None:
        self._places = (folder,)
        self._manifest = manifest
        self._catalogue = catalogue
        self._checked: dict[str, _Checked] = {}
        self._last: tuple[str, RealSplit] | None = None
        self._lock = Lock()

    @property
    def problems(self) -> dict[str, str]:
        """Why a data set that is in the folder cannot be used, by its name."""
        return {name: problem for name, problem in self._look().items() if problem}

    @property
    def workloads(self) -> frozenset[str]:
        """The workloads whose real data is here now."""
        problems = self._look()
        return frozenset(
            workload.name
            for workload in self._catalogue
            if problems.get(workload.data_set.name) == ""
        )

    def _look(self) -> dict[str, str]:
        """The problem of each data set that has a file here, empty for none."""
        with self._lock:
            for data in self._manifest:
                stamps = files.stamps(data, self._places)
                checked = self._checked.get(data.name)
                if checked is None or checked.stamps != stamps:
                    problem = self._problem(data) if any(stamps) else ""
                    self._checked[data.name] = _Checked(stamps, problem)
            return {name: one.problem for name, one in self._checked.items() if any(one.stamps)}

    def _problem(self, data: DataSetFiles) -> str:
        try:
            files.contents(data, self._places)
        except DataProblem as problem:
            words = "BENCH_SERVER_DATA_DIR: %s; without the data a wide range applies"
            logger.warning(words, problem)
            return str(problem)
        return ""

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
