"""Checks of times: those of the worker, of the repeat, and of the parent process."""

from bench_protocol.payload import block_times
from bench_protocol.payload.block_times import Judged
from bench_protocol.training.pace import DOUBTFUL_PACE, WRONG_PACE, compared, pace_of
from bench_protocol.training.reading import parts

from .case import Case
from .verdicts import Effect, Finding

# Room for the rounding of two clocks; contradictions worth naming are far larger.
CLOCK_TOLERANCE = 1.01


def times_fit(case: Case) -> Finding:
    """Timed blocks and start-up lie inside the repeat, so their sum cannot exceed it."""
    startup, blocks, clocks = case.measured.startup, case.measured.blocks, case.result.clocks
    parts_ns = startup.total_ns + blocks.warm_up_ns + blocks.total_ns
    whole_ns = clocks.finished_ns - clocks.started_ns
    return Finding(
        parts_ns <= whole_ns * CLOCK_TOLERANCE,
        f"the measured parts take {parts_ns / 1e9:,.3f} s of the repeat's {whole_ns / 1e9:,.3f} s",
        {"parts_ns": parts_ns, "repeat_ns": whole_ns},
    )


def window(case: Case) -> Finding:
    """The blocks are those that the parent process received, and fill the time that it saw."""
    return _judged(case, block_times.window(case.measured, case.result.clocks))


def window_effect(finding: Finding) -> Effect:
    """A window that contradicts the blocks unranks. One that bounds nothing is a doubt: none, or
    one somewhat shorter than the blocks, because the parent received its first message late."""
    bounds_nothing = finding.figures.get("verdict") in ("missing", "shorter")
    return "doubtful" if bounds_nothing else "unranked"


def pace(case: Case) -> Finding:
    """A step takes no longer in the readings than in the timed blocks of the same session."""
    cell, blocks, witness = case.result.cell, case.measured.blocks, case.measured.witness
    done = parts(case.workload, cell.batch_size, case.result.seed)
    if witness is None or len(witness.readings) != len(done):
        return Finding(True, "it has no readings to compare its blocks with", {}, checked=False)
    number = compared(done)
    found = pace_of(cell, blocks, done[number], witness.readings[number].durations_ns)
    if found is None:
        sentence = "its readings have no call whose speed can be compared with its blocks"
        return Finding(True, sentence, {}, checked=False)
    sentence = (
        f"a step takes {found.reading_ns / 1e6:,.4g} ms in its readings and "
        f"{found.block_ns / 1e6:,.4g} ms in its blocks, {found.ratio:,.3g} times; the limit is "
        f"{DOUBTFUL_PACE:g}"
    )
    passed = found.ratio <= DOUBTFUL_PACE
    load = None if passed else block_times.load(case.result)
    # A single call on a GPU may run at a clock that fell during the evaluation before it.
    is_one = found.calls == 1 and cell.device.kind != "cpu"
    said = sentence if load is None else f"{sentence}; {load}"
    unsure = {"unsure": True} if load or is_one else {}
    return Finding(passed, said, {"ratio": found.ratio} | unsure)


def pace_effect(finding: Finding) -> Effect:
    """A ratio that no busy machine explains shows other work in the blocks. On a busy one threads
    that wait for each other made readings of PyTorch five times as slow as its blocks."""
    is_wrong = finding.figures.get("ratio", 0) > WRONG_PACE and not finding.figures.get("unsure")
    return "unranked" if is_wrong else "doubtful"


def mean_over_median(case: Case) -> Finding:
    """No few blocks take much longer than the others, as where work is queued and not timed."""
    return _judged(case, block_times.evenness(case.measured))


def mean_over_median_effect(finding: Finding) -> Effect:
    """A ratio that no epoch's end explains is quarantined until the operator looks, unless the
    agent reports the load that explains it: there is nothing to look for, and it does not count."""
    if finding.figures["ratio"] <= block_times.IMPOSSIBLE_MEAN:
        return "doubtful"
    return "unranked" if finding.figures.get("too_busy") else "quarantined"


def _judged(case: Case, judged: Judged) -> Finding:
    passed, sentence = judged.weight == "fits", judged.sentence
    busy = block_times.explained(case.result, judged)
    return Finding(passed, busy or sentence, judged.figures | ({"too_busy": True} if busy else {}))
