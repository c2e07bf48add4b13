"""Daily public dumps: every result in one file per format and day."""

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ..answers.filters import ResultFilters
from ..db.store import Store
from ..errors import NotFound
from . import formats
from . import rows as export_rows
from .formats import Format

FORMATS: tuple[Format, ...] = ("csv", "jsonl", "parquet")
NAME = re.compile(r"results-(\d{4}-\d{2}-\d{2})\.(csv|jsonl|parquet)")


@dataclass(frozen=True)
class Dump:
    """A dump file of one day."""

    name: str
    day: str
    format: str
    size_bytes: int


@dataclass(frozen=True)
class DumpsAnswer:
    """The available daily dumps, newest day first; ``/dumps/NAME`` is the file."""

    dumps: tuple[Dump, ...]


def listed(folder: Path | None) -> DumpsAnswer:
    """List the dumps of :func:`write_daily` in a folder; none without a folder."""
    files = sorted(folder.glob("results-*")) if folder else []
    dumps = [
        Dump(path.name, match[1], match[2], path.stat().st_size)
        for path in files
        if (match := NAME.fullmatch(path.name))
    ]
    return DumpsAnswer(tuple(sorted(dumps, key=lambda dump: dump.day, reverse=True)))


def find(folder: Path | None, name: str) -> tuple[Path, str]:
    """Raises NotFound if there is no dump of this name."""
    match = NAME.fullmatch(name)
    if folder is None or match is None or not (folder / name).is_file():
        raise NotFound(
            f"no dump {name[:100]!r}", field="name", hint="GET /api/v1/dumps lists them all"
        )
    return folder / name, formats.MEDIA_TYPES[match[2]]  # type: ignore[index]


def write(store: Store, form: Format, target: Path) -> None:
    """Write every result to one file, which appears when it is complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    with store.reading() as session, partial.open("wb") as file:
        answer, rows = export_rows.results(session, ResultFilters.model_validate({}))
        for chunk in formats.stream(form, formats.columns_of(answer), rows):
            file.write(chunk)
    partial.replace(target)


def write_daily(store: Store, folder: Path, day: date, keep_days: int) -> list[Path]:
    """Write a day's dump in every format; delete those older than ``keep_days``."""
    made = []
    for form in FORMATS:
        made.append(folder / f"results-{day.isoformat()}.{form}")
        write(store, form, made[-1])
        for old in sorted(folder.glob(f"results-????-??-??.{form}"))[:-keep_days]:
            old.unlink()
    return made
