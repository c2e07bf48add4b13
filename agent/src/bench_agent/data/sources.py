"""Folders with real data on this machine, and hints where there is none."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bench_protocol.base import format as people
from bench_protocol.real_data import files
from bench_protocol.real_data.manifest import RealData

from ..base.errors import DataProblem, HomeProblem
from ..base.home import chosen_folder, find_home


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The data folder: ``BENCH_DATA_DIR``, or ``data`` in the agent's folder."""
    return chosen_folder(environ, "BENCH_DATA_DIR") or find_home(environ).root / "data"


def folders(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Folders to search, in order: the data folder, then Keras' cache, if the user has one."""
    found = [data_folder(environ)]
    with suppress(HomeProblem):
        keras = chosen_folder(environ, "KERAS_HOME", "~/.keras")
        found += [keras / "datasets"] if keras else []
    return tuple(found)


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
