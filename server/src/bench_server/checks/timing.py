"""Checks of times: those of the worker, of the repeat, and of the parent process."""

from bench_protocol.payload import figures
from bench_protocol.payload import window as windows

from .case import Case
from .verdicts import Effect, Finding

# Room for the rounding of two clocks; contradictions worth naming are far larger.
CLOCK_TOLERANCE = 1.01
# Mean over median of the blocks. Honest runs: 0.98 to 1.34, where an epoch's end takes 15 blocks'
# time. At worst a block in two has an epoch's end: (1 + 15) / 2 = 8, above which nothing honest is
# known. Without synchronisation: 44.8.
DOUBTFUL_MEAN, IMPOSSIBLE_MEAN = 1.5, 10


def times_fit(case: Case) -> Finding:
    """Timed blocks and start-up lie inside the repeat, so their sum cannot exceed it."""
    startup, blocks, clocks = case.measured.startup, case.measured.blocks, case.result.clocks
    startup_ns = startup.import_ns + startup.data_ns + startup.build_ns + startup.first_step_ns
    parts_ns = startup_ns + blocks.warm_up_ns + blocks.total_ns
    whole_ns = clocks.finished_ns - clocks.started_ns
    return Finding(
        parts_ns <= whole_ns * CLOCK_TOLERANCE,
        f"the measured parts take {parts_ns / 1e9:,.3f} s of the repeat's {whole_ns / 1e9:,.3f} s",
        {"parts_ns": parts_ns, "repeat_ns": whole_ns},
    )


def window(case: Case) -> Finding:
    """The blocks are those that the parent process received, and fill the time that it saw.

    ``figures["verdict"]``: ``missing``, ``outside``, or one of
    :data:`bench_protocol.payload.window.Verdict`.
    """
    seen, blocks, clocks = case.measured.window, case.measured.blocks, case.result.clocks
    if seen is None:
        sentence = "the parent process says no window of the timed part"
        return Finding(False, sentence, {"verdict": "missing"})
    verdict: str
    verdict, blocks_ns, window_ns = windows.judge(blocks.all_durations_ns, seen)
    inside = clocks.started_ns <= seen.started_ns and seen.finished_ns <= clocks.finished_ns
    if verdict == "other_blocks":
        took = "its blocks are not those that the worker reported"
    elif not inside:
        verdict, took = "outside", "the window of the timed part is outside of the repeat"
    else:
        took = (
            f"its blocks take {blocks_ns / 1e9:,.3f} s, and the parent process saw "
            f"{window_ns / 1e9:,.3f} s of them"
        )
    numbers = {"verdict": verdict, "blocks_ns": blocks_ns, "window_ns": window_ns}
    return Finding(verdict == "filled", took, numbers)


def window_effect(finding: Finding) -> Effect:
    """A window that contradicts the blocks unranks. One that bounds nothing is a doubt: none, or
    one somewhat shorter than the blocks, because the parent received its first message late."""
    bounds_nothing = finding.figures.get("verdict") in ("missing", "shorter")
    return "doubtful" if bounds_nothing else "unranked"


def mean_over_median(case: Case) -> Finding:
    """No few blocks take much longer than the others, as where work is queued and not timed."""
    ratio = figures.mean_over_median(case.measured)
    steady = ratio <= DOUBTFUL_MEAN
    return Finding(
        steady,
        f"its block times are {'even' if steady else 'uneven'}: their mean is {ratio:,.4g} times "
        f"their median; the limit is {DOUBTFUL_MEAN:g}",
        {"ratio": ratio},
    )


def mean_over_median_effect(finding: Finding) -> Effect:
    """A ratio that no epoch's end explains is quarantined until the operator looks."""
    return "quarantined" if finding.figures["ratio"] > IMPOSSIBLE_MEAN else "doubtful"
