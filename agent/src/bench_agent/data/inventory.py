"""The ``data`` commands: download data sets, and list them as a JSON document."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench_protocol.base.format import size
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.real_data import files
from bench_protocol.real_data.manifest import RealData

from ..base.errors import DataProblem
from . import fetch, sources

Document = dict[str, Any]


def fetch_all(
    chosen: Sequence[RealData], say: Callable[[str], None], places: Sequence[Path] | None = None
) -> int:
    """Download missing and wrong files into the first of ``places``; return how many failed."""
    places = places or sources.folders()
    failed = 0
    with fetch.open_client() as client:
        for data in chosen:
            if _is_right(data, places):
                say(f"{data.name} is here")
                continue
            for file in data.files:
                say(f"{file.path}: {size(file.size_bytes)}")
                try:
                    path = fetch.fetch(file, places[0], client)
                    say(f"{path} is right")
                except DataProblem as problem:
                    failed += 1
                    say(str(problem))
    return failed


def _is_right(data: RealData, places: Sequence[Path]) -> bool:
    try:
        sources.contents(data, places)
    except DataProblem:
        return False
    return True


def list_document(chosen: Sequence[RealData], places: Sequence[Path] | None = None) -> Document:
    places = places or sources.folders()
    return {
        "folder": str(places[0]),
        "data_sets": [
            {
                "name": data.name,
                "licence": data.licence,
                "bytes": data.size_bytes,
                "files": {
                    file.path: str(path) if (path := files.locate(file, places)) else None
                    for file in data.files
                },
                "workloads": [one.name for one in CATALOGUE if one.data_set.name == data.name],
            }
            for data in chosen
        ],
    }
