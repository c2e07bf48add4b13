"""Checks of times: those of the worker, of the repeat, and of the parent process."""

from statistics import median

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload import block_times
from bench_protocol.payload.block_times import Judged
from bench_protocol.training.reading import parts

from .case import Case
from .verdicts import Effect, Finding

# Room for the rounding of two clocks; contradictions worth naming are far larger.
CLOCK_TOLERANCE = 1.01
# The fastest call of the readings over the median block, a step.
DOUBTFUL_PACE, WRONG_PACE = 1.3, 2.0
# A shorter call says little of longer blocks: its start, the wait for its end and the copy of an
# epoch's order to the device are no training, and on a fast GPU take as long as many steps.
ENOUGH_STEPS, ENOUGH_NS = 16, 10_000_000


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
    """The blocks are those that the parent process received, and fill the time that it saw."""
    return _judged(case, block_times.window(case.measured, case.result.clocks))


def window_effect(finding: Finding) -> Effect:
    """A window that contradicts the blocks unranks. One that bounds nothing is a doubt: none, or
    one somewhat shorter than the blocks, because the parent received its first message late."""
    bounds_nothing = finding.figures.get("verdict") in ("missing", "shorter")
    return "doubtful" if bounds_nothing else "unranked"


def pace(case: Case) -> Finding:
    """The readings took no longer, a step, than the timed blocks: what the session can do when it
    is read, it did when it was timed."""
    witness, blocks = case.measured.witness, case.measured.blocks
    done = parts(case.workload, case.result.cell.batch_size, case.result.seed)
    if witness is None or len(witness.readings) != len(done):
        return Finding(True, "it has no readings to compare its blocks with", {}, checked=False)
    # A step takes less time without dropout, so the reading with dropout is compared.
    kind = "dropout" if any(part.kind == "dropout" for part in done) else "deep"
    size = blocks.steps_per_block
    least, fits = min(size, ENOUGH_STEPS), _fits(case.result.cell)
    times = [
        duration_ns / steps
        for part, reading in zip(done, witness.readings, strict=True)
        for steps, ends, duration_ns in zip(
            part.calls(size), part.ends_epoch(size), reading.durations_ns, strict=False
        )
        if part.kind == kind and steps >= least and duration_ns >= ENOUGH_NS
        if not (fits and ends)
    ]
    if not times:
        sentence = "its readings have no call whose speed can be compared with its blocks"
        return Finding(True, sentence, {}, checked=False)
    reading_ns = min(times)
    # A single call on a GPU may run at a clock that fell during the evaluation before it.
    is_one = len(times) == 1 and case.result.cell.device.kind != "cpu"
    block_ns = median(blocks.durations_ns) / size
    ratio = reading_ns / block_ns
    sentence = (
        f"a step takes {reading_ns / 1e6:,.4g} ms in its readings and {block_ns / 1e6:,.4g} ms in "
        f"its blocks, {ratio:,.3g} times; the limit is {DOUBTFUL_PACE:g}"
    )
    load = block_times.load(case.result) if ratio > DOUBTFUL_PACE else None
    said = sentence if load is None else f"{sentence}; {load}"
    unsure = {"unsure": True} if load or is_one else {}
    return Finding(ratio <= DOUBTFUL_PACE, said, {"ratio": ratio} | unsure)


def _fits(cell: Cell) -> bool:
    """Whether it trains by ``model.fit``. In a reading each order is a call of its own, which
    gathers its samples: an epoch's end takes as long as many steps, and in the timing it does
    not."""
    return cell.framework == "tensorflow" and cell.recipe != "tuned"


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
    """The finding. Where the agent reports a load that explains refused times, it says so."""
    passed, sentence = judged.weight == "fits", judged.sentence
    busy = block_times.explained(case.result, judged)
    return Finding(passed, busy or sentence, judged.figures | ({"too_busy": True} if busy else {}))
