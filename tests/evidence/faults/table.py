"""The table of planted faults, for a terminal and as Markdown."""

from collections import Counter
from collections.abc import Sequence

from bench_protocol.base import format as people

from .fault import GROUPS, SENDERS_CLOCK
from .run import Outcome

# Of an honest run on a CPU.
HONEST_TRUST = 3
HEAD = (
    "fault",
    "what is wrong",
    "planted in",
    "cell",
    "worker",
    "failed checks",
    "ranked",
    "trust",
)


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
        name, fault.words, fault.where, str(fault.setup), outcome.worker, checks(outcome),
        ranked if outcome.right else ranked.upper(), str(outcome.trust),
    )  # fmt: skip


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The table as Markdown, honest controls last."""
    faults_first = sorted(outcomes, key=lambda outcome: outcome.honest)
    return people.markdown(HEAD, map(cells, faults_first))


def by_group(outcomes: Sequence[Outcome]) -> str:
    """Faults and caught ones of each group, as Markdown."""
    planted = [outcome for outcome in outcomes if not outcome.honest]
    totals = Counter(outcome.fault.group for outcome in planted)
    caught = Counter(outcome.fault.group for outcome in planted if outcome.caught)
    rows = [
        (group, words, str(totals[group]), str(caught[group]))
        for group, words in GROUPS.items()
        if totals[group]
    ]
    return people.markdown(("group", "what", "planted", "caught"), rows)


def uncaught(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Faults that are ranked."""
    return [outcome for outcome in outcomes if not outcome.honest and not outcome.caught]


def doubted(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Faults that are ranked, at a lower trust level than an honest run of the same cell."""
    trust = {outcome.fault.setup: outcome.trust for outcome in outcomes if outcome.honest}
    return [
        outcome
        for outcome in uncaught(outcomes)
        if outcome.trust < trust.get(outcome.fault.setup, HONEST_TRUST)
    ]


def summary(outcomes: Sequence[Outcome]) -> str:
    """``N of M caught; n of those in the timed loop``, and how many others are doubted."""
    planted = [outcome for outcome in outcomes if not outcome.honest]
    caught = [outcome for outcome in planted if outcome.caught]
    looped = [outcome for outcome in caught if outcome.fault.in_timed_loop]
    loops = sum(outcome.fault.in_timed_loop for outcome in planted)
    more = f"; {len(doubted(outcomes))} more ranked with a doubt" if doubted(outcomes) else ""
    return (
        f"{len(caught)} of {len(planted)} caught; {len(looped)} of those in the timed loop"
        f" (of {loops} there){more}"
    )


def wrong(outcomes: Sequence[Outcome]) -> list[str]:
    """Why the run fails: an honest control that is not ranked, a fault that is and that a check
    could detect, a fault at an honest run's trust level that is no lie of the sender's own clock, a
    worker that crashed."""
    lines = []
    for outcome in outcomes:
        fault = outcome.fault
        if outcome.crashed:
            lines.append(f"crashed: {fault.name}, {fault.words}")
        elif outcome.honest and not outcome.ranked:
            lines.append(f"honest, not ranked: {fault.setup}: {outcome.reason}")
        elif (
            not outcome.honest
            and outcome.ranked
            and fault.unseen != SENDERS_CLOCK
            and (not fault.unseen or outcome.trust >= HONEST_TRUST)
        ):
            trust = f"trust {outcome.trust}"
            lines.append(f"ranked: {fault.name}, {fault.words} ({fault.setup}), {trust}")
    return lines
