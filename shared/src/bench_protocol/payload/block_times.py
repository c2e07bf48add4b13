"""Whether the block times of a measurement fit together, and whether a busy machine explains it.

The agent judges before it signs, so that it can measure again; the server judges alike.
"""

import math
from typing import Literal, NamedTuple

from . import doubt_text, figures
from . import window as windows
from .result import Clocks, Measurement, Result

# Mean over median of the blocks. Honest runs: 0.98 to 1.34, where an epoch's end takes 15 blocks'
# time. At worst a block in two has an epoch's end: (1 + 15) / 2 = 8, above which nothing honest is
# known. Without synchronisation: 44.8.
DOUBTFUL_MEAN, IMPOSSIBLE_MEAN = 1.5, 10
# Warnings that say that other programs used the processor, and verdicts that this may explain.
BUSY_CODES = ("other_load", "not_idle")
BY_LOAD = ("longer", "shorter", "unseen", "uneven")

Weight = Literal["fits", "doubtful", "refused"]


class Judged(NamedTuple):
    """The verdict on some times. ``doubtful``: they bound nothing or are uneven; ``refused``: no
    undisturbed training has such times."""

    verdict: str
    weight: Weight
    sentence: str
    figures: dict[str, str | float]


def window(measured: Measurement, clocks: Clocks) -> Judged:
    """Whether the blocks are those that the parent process received, and fill the time it saw.

    Returns:
        ``verdict`` is ``missing``, ``outside``, or one of :data:`.window.Verdict`.
    """
    seen, blocks = measured.window, measured.blocks
    if seen is None:
        sentence = "the parent process says no window of the timed part"
        return Judged("missing", "doubtful", sentence, {"verdict": "missing"})
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
    weights: dict[str, Weight] = {"filled": "fits", "shorter": "doubtful"}
    numbers = {"blocks_ns": blocks_ns, "window_ns": window_ns}
    weight = weights.get(verdict, "refused")
    return Judged(verdict, weight, took, {"verdict": verdict, **numbers})


def evenness(measured: Measurement) -> Judged:
    """Whether few blocks take much longer than the others, as where work is queued and not timed,
    or where the processes were held up."""
    ratio = figures.mean_over_median(measured)
    weight: Weight = "refused" if ratio > IMPOSSIBLE_MEAN else "doubtful"
    verdict, weight = ("uneven", weight) if ratio > DOUBTFUL_MEAN else ("even", "fits")
    sentence = (
        f"its block times are {verdict}: their mean is {ratio:,.4g} times their median; the limit "
        f"is {DOUBTFUL_MEAN:g}"
    )
    return Judged(verdict, weight, sentence, {"ratio": ratio})


def misfit(result: Result) -> Judged | None:
    """The worst verdict on its times that a busy machine may explain; None without one."""
    if result.measurement is None:
        return None
    judged = (window(result.measurement, result.clocks), evenness(result.measurement))
    explained = [each for each in judged if each.verdict in BY_LOAD]
    return min(explained, key=lambda each: each.weight != "refused", default=None)


def load(result: Result) -> str | None:
    """What the agent itself reports that can disturb times: other programs, a limit of processor
    time, more threads than cores. In words; None if it reports nothing."""
    causes = [doubt_text.words(warn) for warn in result.warnings if warn.code in BUSY_CODES]
    cpu, settings = result.machine.cpu, result.environment.settings
    cores = cpu.available_cores or cpu.logical_cores or math.inf
    if cpu.quota_cores and cpu.quota_cores < cores:
        causes.append(f"a limit grants {cpu.quota_cores:g} of {cores:g} cores")
    for name, value in settings.items():
        if "THREADS" in name.upper() and value.isdecimal() and int(value) > cores:
            causes.append(f"{name} is {value} on {cores:g} cores")
            break
    return "; ".join(causes) or None


def too_busy(result: Result) -> str | None:
    """Why a busy machine could not measure this; None where its times fit, are only doubtful, or
    the agent reports no load."""
    judged = misfit(result)
    return explained(result, judged) if judged else None


def explained(result: Result, judged: Judged) -> str | None:
    """Refused times of a result by the load that its agent reports, with their figures and limit;
    None where nothing is refused, or load does not explain it."""
    cause = load(result)
    if judged.weight != "refused" or judged.verdict not in BY_LOAD or cause is None:
        return None
    return f"too busy to measure: {cause}; {judged.sentence}"
