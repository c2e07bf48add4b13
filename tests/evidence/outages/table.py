"""The table of faults in Markdown."""

from collections.abc import Iterator, Sequence
from statistics import median

from bench_protocol.base import format as people

from .scene import Outcome

NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "pgbouncer": "PostgreSQL, PgBouncer"}
HEADS = (
    *("fault", "database", "times", "acknowledged", "lost", "doubled", "left in outboxes"),
    *("tree and rows agree", "server up again, s", "next result, s", "5xx without Retry-After"),
)


def markdown(outcomes: Sequence[Outcome]) -> str:
    """One row for each fault and database. Times are median and worst."""
    return people.markdown(HEADS, map(cells, outcomes))


def summary(outcomes: Sequence[Outcome]) -> str:
    """Sums of the table."""
    verdicts = [outcome.verdict for outcome in outcomes]
    return (
        f"{sum(o.times for o in outcomes):,} faults, "
        f"{sum(v.acknowledged for v in verdicts):,} results acknowledged, each receipt verified: "
        f"{sum(v.lost for v in verdicts)} lost, {sum(v.doubled for v in verdicts)} doubled, "
        f"{sum(v.left for v in verdicts)} left in outboxes"
    )


def wrong(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line for each thing that is not as it must be."""
    for outcome in outcomes:
        for words in (*outcome.verdict.wrong, *([outcome.failure] if outcome.failure else ())):
            yield f"{outcome.fault}, {outcome.kind}: {words}"


def row(outcome: Outcome) -> str:
    """The row of one fault."""
    return people.markdown_row(cells(outcome))


def cells(outcome: Outcome) -> tuple[str, ...]:
    """The cells of one fault's row."""
    verdict = outcome.verdict
    statuses = ", ".join(f"{count} x {status}" for status, count in outcome.unasked.items())
    return (
        outcome.fault,
        NAMES[outcome.kind],
        f"{outcome.times:,}",
        f"{verdict.acknowledged:,}",
        str(verdict.lost),
        str(verdict.doubled),
        str(verdict.left),
        "NO" if verdict.wrong else "yes",
        _seconds(outcome.up_seconds),
        _seconds(outcome.again_seconds),
        statuses or "0",
    )


def _seconds(values: Sequence[float]) -> str:
    return f"{median(values):.1f} ({max(values):.1f})" if values else ""
