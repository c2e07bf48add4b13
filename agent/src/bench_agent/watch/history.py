"""The runs of a cell on this machine, from the outbox."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median_high

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.differences import facts_of
from bench_protocol.payload.doubts import disturbances
from bench_protocol.payload.figures import samples_per_second, timing_kind
from bench_protocol.payload.result import Failed, Measured, Result

from ..remote.outbox import Outbox

# More runs of a cell are not read: about a year of weekly ones.
MOST_RUNS = 60


@dataclass(frozen=True)
class CellRun:
    """A run of one cell in one environment.

    ``ns_per_sample``: the median of its undisturbed repeats, of an even number the slower one in
    the middle; None without any. ``failed``: why there is none, if its last repeat failed.
    ``facts``: of machine and software (:mod:`.differences`). ``started``: of its
    first repeat.
    """

    run_id: str
    started: str
    facts: Mapping[str, str]
    ns_per_sample: float | None = None
    failed: Failed | None = None


def runs_of(outbox: Outbox, cell: Cell, machine_hash: str) -> list[CellRun]:
    """This machine's newest runs of a cell, oldest first, of the newest run's kind of timing."""
    results = [entry.result() for entry in outbox.of_cell(cell, 3 * MOST_RUNS)]
    return runs_from(result for result in results if result.machine.machine_hash == machine_hash)


def runs_from(results: Iterable[Result]) -> list[CellRun]:
    """Group the results of one cell into runs. What a run measured before and after a change of
    its environment counts as two."""
    ordered = sorted(results, key=lambda result: result.clocks.started)
    kinds = [kind for result in ordered if (kind := _timing(result))]
    alike = [
        result for result in ordered if _timing(result) in (None, kinds[-1] if kinds else None)
    ]
    groups = groupby(zip(_facts(alike), alike, strict=True), lambda pair: (pair[1].run_id, pair[0]))
    runs = [_run(facts, [result for _, result in pairs]) for (_, facts), pairs in groups]
    return runs[-MOST_RUNS:]


def counted(runs: Sequence[CellRun]) -> list[CellRun]:
    """The runs with a figure: measured and undisturbed."""
    return [run for run in runs if run.ns_per_sample is not None]


def times(runs: Sequence[CellRun]) -> list[float]:
    """Nanoseconds a sample of the runs with a figure."""
    return [run.ns_per_sample for run in runs if run.ns_per_sample is not None]


def _run(facts: Mapping[str, str], repeats: Sequence[Result]) -> CellRun:
    figures = [
        1e9 / samples_per_second(repeat.outcome.measurement, repeat.cell.batch_size)
        for repeat in repeats
        if isinstance(repeat.outcome, Measured) and not disturbances(repeat.warnings)
    ]
    last = repeats[-1].outcome
    return CellRun(
        run_id=repeats[0].run_id,
        started=repeats[0].clocks.started,
        facts=facts,
        ns_per_sample=median_high(figures) if figures else None,
        failed=last if isinstance(last, Failed) and not figures else None,
    )


def _facts(results: Sequence[Result]) -> Iterator[Mapping[str, str]]:
    """The facts of each result. A worker that died before it reported its software has those of
    the result before."""
    before: Mapping[str, str] | None = None
    for result in results:
        if before is None or result.environment.packages:
            before = facts_of(result)
        yield before


def _timing(result: Result) -> str | None:
    """The kind of timing of a measured result."""
    outcome = result.outcome
    if isinstance(outcome, Failed):
        return None
    return timing_kind(result.cell.device.kind, outcome.measurement.blocks.total_ns)
