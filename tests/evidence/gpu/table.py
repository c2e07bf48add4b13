"""One table and ``figures.json`` from what the steps left in their folder."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.peaks import mfu, peak_flops
from bench_protocol.training.reading import convolves

Row = Mapping[str, Any]
# Verdicts of doctor that are not shown: of its self-tests (True), and of its other checks.
_QUIET = {True: ("skip",), False: ("ok", "skip")}


def write(out: Path) -> list[str]:
    """Write ``figures.json`` and ``table.md``; the lines of the table."""
    hardware = _hardware(out)
    figures: dict[str, Any] = {
        "hardware": hardware,
        "parts": list({(r["step"], r["part"]): r for r in _lines(out, "parts.jsonl")}.values()),
        "doctor": _findings(out / "doctor.json"),
        "smoke": _levels(out / "smoke.txt"),
        "hidden": _findings(out / "hidden.json"),
        "readings": readings([*_lines(out, "readings-*.jsonl")]),
        "clock": [*_lines(out, "clock.jsonl")],
        "loops": [*_lines(out, "loops.jsonl")],
        "speeds": [*_speeds(out, hardware)],
        "breaks": {name: _document(out / f"{name}.json") for name in ("large", "resumed")},
    }
    (out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    lines = [*_table(figures)]
    (out / "table.md").write_text("\n".join(lines) + "\n")
    return lines


def readings(rows: list[Row]) -> list[dict[str, Any]]:
    """The largest deviations by device, precision and convolutions; ``off``: by kind of reading of
    loss, farthest and median movement."""
    groups: dict[tuple[str, str, bool], list[Row]] = defaultdict(list)
    for row in rows:
        is_convolved = convolves(workload_named(row["workload"]))
        groups[row["device"], row["precision"], is_convolved].append(row)
    found = []
    for (device, precision, is_convolved), some in sorted(groups.items()):
        off: dict[str, list[float]] = {}
        for row in some:
            for kind, values in row["off"].items():
                off[kind] = [*map(max, off.get(kind, [0.0] * len(values)), values)]
        wrong = [
            f"{row['framework']} {row['workload']} {row['form']}: {row['sentence']}"
            for row in some
            if row["verdict"] != "conformant"
        ]
        group = {"device": device, "precision": precision, "convolves": is_convolved}
        found.append({**group, "sessions": len(some), "off": off, "not_conformant": wrong})
    return found


def _lines(out: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(out.glob(pattern)):
        for line in path.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # its writer was ended


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def _findings(path: Path) -> list[str]:
    """Return a line for each problem that doctor found, and for each self-test."""
    return [
        f"{one['id']} {one['verdict']}: {one['sentence']}"
        for one in (_document(path) or {}).get("findings", ())
        if one["verdict"] not in _QUIET[one["id"].startswith("self-test")]
    ]


def _levels(path: Path) -> list[str]:
    """The lines of the smoke run on its cells and their trust levels."""
    lines = path.read_text().splitlines() if path.exists() else []
    wanted = re.compile(r"At trust level|  \d+ at level|\[\d+/")
    return [line.strip() for line in lines if wanted.match(line)]


def _hardware(out: Path) -> str | None:
    """The GPU's name, as in the list of peaks."""
    text = (out / "machine.txt").read_text() if (out / "machine.txt").exists() else ""
    names = (line.split(":", 1)[1].strip() for line in text.splitlines() if "Product Name" in line)
    return next(names, None)


def _speeds(out: Path, hardware: str | None) -> Iterator[dict[str, Any]]:
    for path in sorted(out.glob("speed-*.json")):
        for result in (_document(path) or {}).get("results", ()):
            cell, rate = result["cell"], result["samples_per_second"]
            workload = workload_named(cell["workload"])
            share = mfu(workload, hardware or "", cell["precision"], 1e9 / rate if rate else None)
            shown = {name: cell[name] for name in ("workload", "framework", "precision", "recipe")}
            shown |= {name: result[name] for name in ("status", "failure", "spread")}
            shown |= {"samples_per_second": rate, "mfu": share}
            shown["form"] = result["recipe_settings"].get("form", "")
            yield {**shown, "energy_per_sample_mj": result["energy_per_sample_mj"]}


def _table(figures: Mapping[str, Any]) -> Iterator[str]:
    yield f"| what | on {figures['hardware'] or 'this machine'} |"
    yield "|---|---|"
    for part in figures["parts"]:
        if part["exit"] != 0:
            yield f"| {part['step']}: {part['part']} | exit {part['exit']}: {part['line']} |"
    for name in ("doctor", "hidden", "smoke"):
        yield from (f"| {name} | {line} |" for line in figures[name])
    for row in figures["readings"]:
        kind = "with" if row["convolves"] else "without"
        off = ", ".join(f"{name} {_several(values)}" for name, values in row["off"].items())
        wrong = f"; {len(row['not_conformant'])} not conformant" if row["not_conformant"] else ""
        name = f"{row['device']} {row['precision']}, {kind} convolutions"
        yield f"| readings, {name} | n = {row['sessions']}: {off}{wrong} |"
    for row in figures["clock"]:
        yield _clock(row, figures["hardware"])
    yield from _loops(figures["loops"])
    for row in figures["speeds"]:
        name = f"{row['framework']} {row['workload']} {row['precision']} {row['form']}".strip()
        energy, share = row["energy_per_sample_mj"], row["mfu"]
        energy_text = f"{energy:.3f} mJ" if energy else "no energy"
        share_text = f"MFU {share:.1%}" if share else "no MFU"
        rate = (
            f"{row['samples_per_second']:,.0f}/s" if row["samples_per_second"] else row["failure"]
        )
        yield f"| speed, {name} | {row['status']} {rate}, {energy_text}, {share_text} |"
    for name in ("large", "resumed"):
        told = figures["breaks"][name]
        for result in (told or {}).get("results", ()):
            left = told.get("left_on_the_gpu")
            end = f"; left on the GPU: {left}" if left else ""
            cell = f"{result['cell']['framework']}, batch {result['cell']['batch_size']}"
            yield f"| {name}, {cell} | {result['status']} {_words(result['failure'])}{end} |"


def _several(values: list[float]) -> str:
    return " ".join(f"{value:.1e}" for value in values[:2])


def _words(failure: Any) -> str:
    return str(failure)[:200] if failure else ""


def _clock(row: Row, hardware: str | None) -> str:
    if row["kind"] == "product":
        peak = peak_flops(hardware or "", row["precision"])
        share = f", {row['teraflops'] * 1e12 / peak:.0%} of the peak" if peak else ""
        name = f"{row['framework']} {row['precision']} {row['size']}"
        return f"| product, {name} | {row['teraflops']:.2f} TFLOP/s{share} |"
    name = f"{row['framework']} {row['workload']} {row['form']}".strip()
    if "problem" in row:
        return f"| stopwatch, {name} | {row['problem']} |"
    events = f", over events {row['block_us'] / row['events_us']:.3f}" if "events_us" in row else ""
    slope = f"over the slope {row['block_us'] / row['slope_us']:.3f}" if row["slope_us"] else ""
    return f"| stopwatch, {name} | {row['block_us']:.1f} us a step, {slope}{events} |"


def _loops(rows: list[Row]) -> Iterator[str]:
    sides: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        sides[row["framework"], row["workload"], row["precision"]].append(row)
    for key, some in sides.items():
        each = ", ".join(f"{row['side']} {row['step_us']:.1f}" for row in some)
        own, by_hand = (
            min((r["step_us"] for r in some if r["side"].startswith(word)), default=0.0)
            for word in ("tuned", "bare")
        )
        times = f"; tuned {by_hand / own:.2f} times as fast" if own and by_hand else ""
        yield f"| loops, {' '.join(key)}, us a step | {each}{times} |"
