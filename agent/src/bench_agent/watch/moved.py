"""What moved: a verdict at the newest change of environment, and changes at no known place.

Where machine or software changed, the runs after it are compared with those before it. Their number
is fixed beforehand, and each change of environment is judged once, so the verdict errs as rarely as
stated. Elsewhere :func:`.change_points.change_points` searches the whole history
after each new run; :data:`SEARCH_SIGNIFICANCE` allows for that repetition.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_high
from typing import Literal, TypeVar

from bench_protocol.payload.differences import Difference, differences
from bench_protocol.payload.result import Failed
from bench_protocol.statistics.change_points import LEAST_RUNS, change_points
from bench_protocol.statistics.comparison import (
    RUNS_FOR_A_VERDICT,
    SIGNIFICANCE,
    LogSample,
    SpeedVerdict,
    compare,
    compare_samples,
    holm,
    no_difference_among,
)

from .due import runs_since_change
from .history import CellRun, counted, times

# The probability of a change in one search of histories without any, those of all cells together.
SEARCH_SIGNIFICANCE = 0.003
# A verdict compares with at most this many runs before the change.
MOST_COMPARED = 10

Key = TypeVar("Key")
State = Literal["no_runs", "nothing_before", "open", "decided"]
Direction = Literal["failed", "slower", "faster"]


@dataclass(frozen=True)
class Change:
    """From this run on the cell was ``verdict.speed_up`` times as fast, in an unchanged
    environment; the interval is as if the place had been known before. ``new``: not reported
    before."""

    run: CellRun
    verdict: SpeedVerdict
    new: bool


@dataclass(frozen=True)
class Finding:
    """What the history of one cell says.

    ``state``: ``nothing_before`` without runs to compare with, ``open`` while the runs since the
    newest change of environment are too few for a verdict, else ``decided``. ``before`` and
    ``since``: runs with a figure on each side of that change; ``ns_before`` and ``ns_since``:
    medians of the compared ones, nanoseconds a sample; ``changed``: what differs. ``left_out``:
    disturbed or failed runs. ``p_value``: of the verdict, corrected. ``failed``: why the newest run
    has no figure, if that was not reported before. ``new``: the verdict was not reported before.
    """

    state: State
    before: int = 0
    since: int = 0
    left_out: int = 0
    changed: tuple[Difference, ...] = ()
    ns_before: float | None = None
    ns_since: float | None = None
    verdict: SpeedVerdict | None = None
    p_value: float | None = None
    changes: tuple[Change, ...] = ()
    failed: Failed | None = None
    new: bool = False

    @property
    def moved(self) -> Direction | None:
        """What was not reported before; the worst of several."""
        if self.failed:
            return "failed"
        new = [change.verdict.speed_up for change in self.changes if change.new]
        if self.new and self.verdict and self.verdict.kind in ("slower", "faster"):
            new.append(self.verdict.speed_up)
        return ("slower" if min(new) < 1 else "faster") if new else None


def find(
    histories: Mapping[Key, Sequence[CellRun]], needed: int, reported: Mapping[Key, str]
) -> dict[Key, Finding]:
    """What the histories of several cells say, corrected for being judged together (Holm).

    Args:
        histories: the runs of each cell, oldest first.
        needed: runs after a change of environment before its verdict.
        reported: when the newest run that was reported before started; runs after it are new.
    """
    findings = {
        key: _finding(runs, needed, reported.get(key, ""), SEARCH_SIGNIFICANCE / len(histories))
        for key, runs in histories.items()
    }
    judged = {
        key: (finding.verdict, finding.verdict.p_value)
        for key, finding in findings.items()
        if finding.verdict and finding.verdict.p_value is not None
    }
    p_values = holm([p_value for _, p_value in judged.values()])
    for (key, (verdict, _)), p_value in zip(judged.items(), p_values, strict=True):
        if verdict.kind != "no_difference" and p_value > SIGNIFICANCE:
            words = no_difference_among(len(judged), verdict.words)
            verdict = replace(verdict, kind="no_difference", words=words)
        findings[key] = replace(findings[key], verdict=verdict, p_value=p_value)
    return findings


def _finding(runs: Sequence[CellRun], needed: int, reported: str, significance: float) -> Finding:
    if not runs:
        return Finding("no_runs")
    since = runs_since_change(runs)
    old, new = _compared(runs[: len(runs) - len(since)]), counted(since)[:needed]
    decided = bool(old) and len(new) == needed
    return Finding(
        state="decided" if decided else "open" if old else "nothing_before",
        before=len(old),
        since=len(counted(since)),
        left_out=len(runs) - len(counted(runs)),
        changed=differences(old[-1].facts, since[-1].facts) if old else (),
        ns_before=median_high(times(old)) if old else None,
        ns_since=median_high(times(new)) if new else None,
        verdict=compare(times(new), times(old)) if decided else None,
        changes=_changes(counted(runs), reported, significance),
        failed=runs[-1].failed if runs[-1].started > reported else None,
        new=decided and new[-1].started > reported,
    )


def _compared(earlier: Sequence[CellRun]) -> list[CellRun]:
    """The runs that a verdict compares with: those of the newest earlier environment that has
    enough, else all earlier ones; the newest of them."""
    rest = earlier
    while rest:
        alike = runs_since_change(rest)
        if len(counted(alike)) >= RUNS_FOR_A_VERDICT:
            return counted(alike)[-MOST_COMPARED:]
        rest = rest[: len(rest) - len(alike)]
    return counted(earlier)[-MOST_COMPARED:]


def _changes(runs: Sequence[CellRun], reported: str, significance: float) -> tuple[Change, ...]:
    """The changes of level away from changes of environment, which have a verdict of their own.

    Args:
        runs: with a figure, oldest first.
    """
    places = change_points(times(runs), significance)
    if not places:
        return ()
    earlier = [run for run in runs if run.started <= reported]
    known = change_points(times(earlier), significance)
    boundaries = [n for n in range(1, len(runs)) if runs[n].facts != runs[n - 1].facts]
    edges = [0, *places, len(runs)]
    return tuple(
        Change(
            runs[place],
            _step(times(runs[start:place]), times(runs[place:end])),
            new=len(earlier) < len(runs) and not _near(place, known),
        )
        for start, place, end in zip(edges, places, edges[2:], strict=False)
        if not _near(place, boundaries)
    )


def _near(place: int, places: Sequence[int]) -> bool:
    return any(abs(place - other) < LEAST_RUNS for other in places)


def _step(old: Sequence[float], new: Sequence[float]) -> SpeedVerdict:
    speed_up = median_high(old) / median_high(new)
    return compare_samples(speed_up, LogSample.of(new), LogSample.of(old))
