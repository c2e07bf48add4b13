"""Folders with real data on this machine, and hints where there is none."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_protocol.base import format as people
from bench_protocol.real_data import files
from bench_protocol.real_data.manifest import RealData

from ..base.errors import DataProblem
from ..base.home import find_home


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The data folder: ``BENCH_DATA_DIR``, or ``data`` in the agent's folder."""
    chosen = environ.get("BENCH_DATA_DIR")
    return Path(chosen).expanduser() if chosen else find_home(environ).root / "data"


def folders(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Folders to search, in order: the data folder, then Keras' cache."""
    keras = Path(environ.get("KERAS_HOME") or "~/.keras").expanduser()
    return data_folder(environ), keras / "datasets"


def contents(data: RealData, places: Sequence[Path]) -> list[bytes]:
    """The files' contents, in order, of checked size and SHA-256.

    Raises:
        DataProblem: a file is missing, wrong or cannot be read; the message says how to fix it.
    """
    try:
        return files.contents(data, places)
    except DataProblem as problem:
        names = ", ".join(file.path for file in data.files)
        raise DataProblem(
            f"{problem}. Run: bench-agent data fetch {data.name} ({people.size(data.size_bytes)}), "
            f"or put {names} into {places[0]} (BENCH_DATA_DIR), or take --data generated"
        ) from None
