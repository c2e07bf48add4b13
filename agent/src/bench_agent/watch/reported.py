"""Which runs a watch has reported, so that what they show is reported once, also after a crash."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from bench_protocol.base.units import Wire

from ..base.home import write_durably


class Reported(Wire):
    """For each cell, by its digest: when its newest reported run started."""

    newest: dict[str, str]


def load(path: Path) -> dict[str, str]:
    """The stored times; none where the file is missing or of another version."""
    try:
        return Reported.model_validate_json(path.read_bytes()).newest
    except (FileNotFoundError, ValidationError):
        return {}


def store(path: Path, newest: Mapping[str, str]) -> None:
    """Add times to the stored ones.

    Raises:
        HomeProblem: the file cannot be written.
    """
    together = Reported(newest=load(path) | dict(newest))
    write_durably(path, together.model_dump_json().encode())
