"""The table of planted faults, for a terminal and as Markdown."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from bench_protocol.base import format as people

from . import proofs
from .fault import GROUPS
from .run import Outcome

# Of an honest run on a CPU.
HONEST_TRUST = 3
# The least share of the faults that is caught.
LEAST_CAUGHT = 0.95
HEAD = (
    "fault",
    "what is wrong",
    "planted in",
    "cell",
    "kept off by",
    "ranked",
    "trust",
)
PROOFS_HEAD = ("proof", "keeps off", "alone", "which", "seconds to read", "to recompute")


def checks(outcome: Outcome) -> str:
    """The failed checks by effect, the strongest first."""
    order = ("unranked", "quarantined", "stale", "doubtful")
    failed = sorted(outcome.checks, key=lambda check: order.index(check.effect))
    return ", ".join(f"{check.name} ({check.effect})" for check in failed) or "none"


def cells(outcome: Outcome) -> tuple[str, ...]:
    """One row."""
    fault = outcome.fault
    ranked = "yes" if outcome.ranked else "no"
    name = "control" if outcome.honest else fault.name
    return (
        name, fault.words, fault.where, str(fault.setup), ", ".join(outcome.proofs) or "nothing",
        ranked if outcome.right else ranked.upper(), str(outcome.trust),
    )  # fmt: skip


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The table as Markdown, honest controls last."""
    faults_first = sorted(outcomes, key=lambda outcome: outcome.honest)
    return people.markdown(HEAD, map(cells, faults_first))


def by_group(outcomes: Sequence[Outcome]) -> str:
    """Slips and cheats of each group, and how many of them are caught, as Markdown."""
    rows = []
    for group, words in GROUPS.items():
        members = [one for one in faults(outcomes) if one.fault.group == group]
        if members:
            rows.append((group, words, *(_caught(_of(members, slip)) for slip in (True, False))))
    return people.markdown(("group", "what", "slips caught", "cheats caught"), rows)


def by_proof(outcomes: Sequence[Outcome], recomputed: Mapping[str, Sequence[float]]) -> str:
    """For each proof the faults that it keeps off, and those that it alone does, as Markdown.

    Args:
        recomputed: processor seconds of each reading's recomputation, of some workloads.
    """
    caught = [one for one in faults(outcomes) if one.caught]
    keeps = Counter(proof for one in caught for proof in one.proofs)
    names = sorted({*proofs.ORDER, *keeps}, key=proofs.place)
    rows = []
    for proof in names:
        alone = [one.fault.name for one in caught if one.proofs == (proof,)]
        read = [one.seconds[proof] for one in outcomes if one.honest and proof in one.seconds]
        which = ", ".join(alone) or "-"
        seconds = _seconds(read), _seconds(recomputed.get(proof, ()))
        rows.append((proof, str(keeps[proof]), str(len(alone)), which, *seconds))
    return people.markdown(PROOFS_HEAD, rows)


def _seconds(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{median(values):.2g} ({min(values):.2g} to {max(values):.2g})"


def faults(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if not outcome.honest]


def uncaught(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Faults that are ranked."""
    return [outcome for outcome in faults(outcomes) if not outcome.caught]


def doubted(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Faults that are ranked, at a lower trust level than an honest run of the same cell."""
    trust = {outcome.fault.setup: outcome.trust for outcome in outcomes if outcome.honest}
    return [
        outcome
        for outcome in uncaught(outcomes)
        if outcome.trust < trust.get(outcome.fault.setup, HONEST_TRUST)
    ]


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many faults are caught, slips and cheats apart, and how many others are doubted."""
    planted, honest = faults(outcomes), [one for one in outcomes if one.honest]
    share = sum(one.caught for one in planted) / max(1, len(planted))
    parts = [f"{_caught(planted)} caught ({people.percent(share)})"]
    for slip, words in ((True, "slips"), (False, "cheats")):
        if members := _of(planted, slip):
            parts.append(f"{_caught(members)} {words}")
    if more := len(doubted(outcomes)):
        parts.append(f"{more} more ranked with a doubt")
    if even := len(uncaught(outcomes)) - more:
        parts.append(f"{even} ranked as honest runs are")
    if honest:
        parts.append(f"{sum(one.ranked for one in honest)} of {len(honest)} controls ranked")
    return "; ".join(parts)


def wrong(outcomes: Sequence[Outcome]) -> list[str]:
    """Why the run fails: an honest control that is not ranked, a worker that crashed, a slip that
    is ranked, a fault that a check could detect and that is, more than one fault of twenty that
    is."""
    lines = []
    for outcome in outcomes:
        fault = outcome.fault
        what = f"{fault.name}, {fault.words} ({fault.setup}), trust {outcome.trust}"
        if outcome.crashed:
            lines.append(f"crashed: {fault.name}, {fault.words}")
        elif outcome.honest and not outcome.ranked:
            lines.append(f"honest, not ranked: {fault.setup}: {outcome.reason}")
        elif not outcome.honest and outcome.ranked and (fault.slip or not fault.unseen):
            lines.append(f"ranked: {what}")
    planted = faults(outcomes)
    if sum(one.caught for one in planted) < LEAST_CAUGHT * len(planted) and len(planted) > 1:
        lines.append(f"fewer than {people.percent(LEAST_CAUGHT, 0)}: {_caught(planted)} caught")
    return lines


def _of(outcomes: Sequence[Outcome], slip: bool) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.fault.slip == slip]


def _caught(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "-"
    return f"{sum(outcome.caught for outcome in outcomes)} of {len(outcomes)}"
