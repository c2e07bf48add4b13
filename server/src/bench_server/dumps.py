"""The daily public dump: every result as a file of that day, for whoever wants them all."""

from datetime import date
from pathlib import Path

from . import exports, flat
from .db import Store
from .exports import Format
from .filters import ResultFilters

FORMATS: tuple[Format, ...] = ("csv", "jsonl", "parquet")


def write(store: Store, form: Format, target: Path) -> None:
    """Every result into one file, which appears once it is complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    with store.reading() as session, partial.open("wb") as file:
        answer, rows = flat.results(session, ResultFilters.model_validate({}))
        for chunk in exports.stream(form, exports.columns_of(answer), rows):
            file.write(chunk)
    partial.replace(target)


def write_daily(store: Store, folder: Path, day: date, keep_days: int) -> list[Path]:
    """The dump of a day in every format; older ones beyond ``keep_days`` days go.

    Returns:
        The files of the day.
    """
    made = []
    for form in FORMATS:
        made.append(folder / f"results-{day.isoformat()}.{form}")
        write(store, form, made[-1])
        for old in sorted(folder.glob(f"results-????-??-??.{form}"))[:-keep_days]:
            old.unlink()
    return made
