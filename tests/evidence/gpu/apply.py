"""Turn ``figures.json`` into the limits of readings and the tables that state them.

A limit is three times the largest deviation, rounded up to one digit, and never tighter than it
was: it must hold for every machine that was measured. Nothing is written for a device
and precision without a session.
"""

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy.locks import ROOT

from bench_protocol.training import witness_limits

LIMITS = Path("shared/src/bench_protocol/training/witness_limits.py")
PROTOCOL, RESULTS = Path("docs/protocol.md"), Path("docs/results.md")
KINDS = ("short", "first", "deep", "masks", "steady")
TIMES = 3.0
Table = dict[str, tuple[tuple[float, float], tuple[float, float]]]
Key = tuple[str, str]


def apply(file: Path, root: Path = ROOT) -> list[str]:
    """Write limits and tables below ``root``; a line for each limit that changed.

    Raises:
        ValueError: the file has no readings.
    """
    readings = json.loads(file.read_text())["readings"]
    if not readings:
        raise ValueError(f"{file} has no readings: run the step readings, then table")
    measured: dict[Key, Table] = {**witness_limits.MEASURED}  # type: ignore[dict-item]
    start: dict[Key, float] = {**witness_limits.START}  # type: ignore[dict-item]
    changes = []
    for row in readings:
        key = (row["device"], row["precision"])
        before = measured.get(key) or measured["cpu", "float32"]
        measured[key] = widened(before, row)
        start[key] = max(start.get(key, 0.0), _limit(row["off"]["start"][0]))
        changes += _changes(key, before, measured[key])
    source = (root / LIMITS).read_text()
    for name, entries in (("MEASURED", measured), ("START", start)):
        for key, value in entries.items():
            source = with_entry(source, name, key, value)
    (root / LIMITS).write_text(source)
    page = (root / PROTOCOL).read_text()
    (root / PROTOCOL).write_text(with_limits(page, measured, start))
    page = (root / RESULTS).read_text()
    (root / RESULTS).write_text(with_readings(page, readings))
    return changes or ["every session is within a third of today's limits: they stay"]


def widened(table: Mapping[Any, Any], row: Mapping[str, Any]) -> Table:
    """The limits of a device and precision that also hold for a row of readings."""
    place = int(row["convolves"])
    found: Table = {}
    for kind in KINDS:
        pairs = list(table[kind])
        if kind in row["off"]:
            offs = row["off"][kind][:2]
            pairs[place] = tuple(map(max, pairs[place], map(_limit, offs)))
        found[kind] = (pairs[0], pairs[1])
    return found


def _limit(largest: float) -> float:
    """Three times a deviation, rounded up to one digit."""
    if largest == 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(TIMES * largest))
    return float(f"{math.ceil(TIMES * largest / unit - 1e-9) * unit:.0e}")


def _changes(key: Key, before: Mapping[Any, Any], after: Table) -> Iterator[str]:
    for kind in KINDS:
        for place, what in enumerate(("", ", with convolutions")):
            if before[kind][place] != after[kind][place]:
                values = f"{before[kind][place]} becomes {after[kind][place]}"
                yield f"{' '.join(key)}, {kind}{what}: {values}"


def with_entry(source: str, name: str, key: Key, value: Table | float) -> str:
    """The module with an entry of one of its literals; unchanged if it says the same."""
    literal = next(
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name
    )
    assert isinstance(literal, ast.Dict)
    assert literal.end_lineno is not None
    lines = source.splitlines(keepends=True)
    entry = f'    ("{key[0]}", "{key[1]}"): {_literal(value)},\n'
    for where, node in zip(literal.keys, literal.values, strict=True):
        if where is not None and ast.literal_eval(where) == key:
            if _same(name, key, value):
                return source
            first, last = where.lineno - 1, node.end_lineno
            return "".join([*lines[:first], entry, *lines[last:]])
    end = literal.end_lineno - 1
    return "".join([*lines[:end], entry, *lines[end:]])


def _same(name: str, key: Key, value: Table | float) -> bool:
    present: Any = getattr(witness_limits, name).get(key)
    return bool(present == value)


def _literal(value: Table | float) -> str:
    if isinstance(value, float):
        return _number(value)
    pairs = (
        f'        "{kind}": ({", ".join(f"({_number(a)}, {_number(b)})" for a, b in value[kind])}),'
        for kind in KINDS
    )
    return "\n".join(("{", *pairs, "    }"))


def _number(value: float) -> str:
    """Such as 5e-5 or 1.5e-1."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def with_limits(page: str, measured: Mapping[Key, Table], start: Mapping[Key, float]) -> str:
    """The protocol's page with the table of limits: a column for those that share one."""
    columns: list[tuple[list[Key], Table]] = []
    for key, table in measured.items():
        same = next((keys for keys, other in columns if other == table), None)
        if same is None:
            columns.append(([key], table))
        else:
            same.append(key)
    heads, starts = [], []
    for keys, _ in columns:
        devices, precisions = (list(dict.fromkeys(one)) for one in zip(*keys, strict=True))
        heads.append(f"{' and '.join(devices)}, {' and '.join(f'`{one}`' for one in precisions)}")
        starts.append("; ".join(dict.fromkeys(f"{start[key]:g}" for key in keys)))
    rows = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    rows.append(f"| `start_loss` | {' | '.join(starts)} |")
    for kind in KINDS:
        for place, suffix in enumerate(("", ", conv.")):
            pairs = ("{:g}, {:g}".format(*table[kind][place]) for _, table in columns)
            rows.append(f"| `{kind}`{suffix} | {' | '.join(pairs)} |")
    block = re.compile(r"^\| \| .*\n\|---.*\n\| `start_loss` .*\n(?:\|.*\n)*", re.MULTILINE)
    return block.sub(lambda _: "\n".join(rows) + "\n", page, count=1)


def with_readings(page: str, readings: list[dict[str, Any]]) -> str:
    """The results' page with the rows of the precisions that CUDA trained."""
    for precision in dict.fromkeys(row["precision"] for row in readings if row["device"] == "cuda"):
        plain, convolved = (
            next(
                (
                    r
                    for r in readings
                    if (r["device"], r["precision"], r["convolves"])
                    == ("cuda", precision, is_convolved)
                ),
                None,
            )
            for is_convolved in (False, True)
        )
        some = [row for row in (plain, convolved) if row]
        cells = [
            f"`{precision}`",
            str(sum(row["sessions"] for row in some)),
            _number(max(row["off"]["start"][0] for row in some)),
            *(
                ", ".join(map(_number, row["off"]["deep"][:2])) if row else "-"
                for row in (plain, convolved)
            ),
            _number(convolved["off"]["deep"][2]) if convolved else "-",
        ]
        row_of = re.compile(rf"^\| `{precision}` \| \d+ \| .*$", re.MULTILINE)
        page = row_of.sub(lambda _, cells=cells: f"| {' | '.join(cells)} |", page, count=1)  # type: ignore[misc]
    return page
