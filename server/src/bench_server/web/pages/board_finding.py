"""The finding of the leaderboard as its heading, and doubts about it."""

from collections import Counter
from collections.abc import Sequence

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds

from ...answers import leaderboard
from ...answers.board_filters import BoardFilters
from ...answers.orders import RANK_BY
from ...answers.types.leaderboard import HardwareScore, figure_answer
from ...ranking.figures import Figure
from . import board_form
from .board_links import Metric

BY_ONE_OWNER = "measured by one owner"
NOTHING_FOUND = "No ranked hardware matches the search"


def finding(
    filters: BoardFilters,
    metric: Metric,
    rankings: Sequence[leaderboard.Ranking],
    scores: Sequence[HardwareScore],
    any_rows: bool = False,
) -> str:
    """Of all boards: the best score, else the hardware that is first on most of them. Of hardware
    that is searched for, where the best of it is. Without results it says so."""
    asked, firsts = board_form.words(filters), _firsts(rankings)
    measured = {row.figure.hardware_slug for one in rankings for row in one.shown}
    if filters.criteria.search.is_of_one:
        found = _of_search(filters, metric, rankings, scores)
    elif filters.group == "machine" and any_rows:
        found = f"machines that train {filters.workload or 'each workload'}"
    elif filters.workload is None and firsts and _all_beside_published(scores):
        found = _uncompared(next(iter(firsts.values())))
    elif filters.workload is None and scores:
        found = _by_score(scores, rankings, alone=len(measured) < 2)
    elif firsts and filters.workload is None and len(measured) == 1:
        found = f"{next(iter(firsts.values())).hardware} is the only hardware so far"
    elif firsts and filters.workload is not None:
        return _leads(filters, metric, rankings[0])
    elif firsts:
        ((first, count),) = Counter(one.hardware for one in firsts.values()).most_common(1)
        several = f"{count} of {len(firsts)} workloads" if len(firsts) > 1 else ""
        where = several or filters.workload or next(iter(firsts))
        alone = any(one.backing == "one" for one in firsts.values() if one.hardware == first)
        found = f"{first} {metric.first.format(where)}{f', {BY_ONE_OWNER}' * alone}"
    elif asked or filters.workload is None:
        found = "no ranked results yet"
    else:
        found = f"who {metric.first.format(filters.workload)}?"
    return f"{asked}: {found}" if asked else found[:1].upper() + found[1:]


def _all_beside_published(scores: Sequence[HardwareScore]) -> bool:
    """Whether scores are ratios to somebody's published figure, which has no range."""
    baseline = (one for one in scores if one.hardware_slug == one.score.baseline_slug)
    return any(one.published for one in baseline)


def _uncompared(first: Figure) -> str:
    workload, by_one = first.subject.workload, f", {BY_ONE_OWNER}" * (first.backing == "one")
    speed = speeds.words(1e9 / first.ns_per_sample, workload)
    return f"{first.hardware} trains {workload} at {speed}{by_one}"


def _leads(filters: BoardFilters, metric: Metric, ranking: leaderboard.Ranking) -> str:
    """``mnist-cnn, on Metal: Apple M4 Max is fastest, 3,042 samples/s``."""
    first = next(row.figure for row in ranking.shown if row.rank)
    asked = board_form.words(filters, sentence=False)
    where = f"{ranking.workload.name}, {asked}" if asked else ranking.workload.name
    of = f" of {_ranked(filters, ranking)}" if filters.backing else ""
    return f"{where}: {first.hardware} {metric.leads}{of}, {_value(metric, first)}"


def _value(metric: Metric, figure: Figure) -> str:
    answer = figure_answer(figure)
    if metric.value == "energy":
        return f"{people.joules(answer.joules_per_epoch or 0)} an epoch"
    if metric.value == "mfu":
        return people.percent(answer.mfu or 0)
    if metric.value == "time":
        return f"{people.seconds(answer.epoch_seconds)} an epoch"
    return speeds.words(answer.samples_per_second, figure.subject.workload)


def _ranked(filters: BoardFilters, ranking: leaderboard.Ranking) -> str:
    """``47``, or ``12 confirmed``: how many rows have a rank."""
    ranked = sum(row.rank is not None for row in ranking.rows)
    return f"{ranked:,}" + (" confirmed" if filters.backing == "confirmed" else "")


def backed(rankings: Sequence[leaderboard.Ranking]) -> str:
    """Say in words what all boards rest on."""
    ranked = [row.figure for one in rankings for row in one.rows if row.rank]
    if ranked and all(one.backing == "one" for one in ranked):
        return "no figure with a second owner yet"
    return "all signed"


def rests_on(rankings: Sequence[leaderboard.Ranking], filters: BoardFilters) -> str:
    """What backs the first of a workload's board, and the first that confirmed owners measured; of
    several boards, :func:`backed`."""
    if filters.workload is None:
        some = any(row.rank for one in rankings for row in one.rows)
        return f"Measured here: {backed(rankings)}." if some else ""
    ranked = [row for row in rankings[0].shown if row.rank]
    if not ranked or ranked[0].figure.backing is None:
        return ""
    owners = ranked[0].figure.owners
    if ranked[0].figure.backing == "confirmed":
        return f"Measured by {people.plural(owners.confirmed, 'confirmed owner')}."
    measured = f"Measured by {'one owner' if owners.total == 1 else f'{owners.total} owners'}"
    figures = [one for row in ranked for one in (row.figure, *row.others)]
    confirmed = [one for one in figures if one.backing == "confirmed" and not one.held]
    if not confirmed:
        return f"{measured}."
    value = RANK_BY[filters.ranked_by]
    first = min(confirmed, key=lambda one: (value(one) is None, value(one)))
    best = "fastest" if filters.ranked_by in ("throughput", "time") else "first"
    setup = f"{first.hardware} with {people.framework(first.setup.framework)}"
    return f"{measured}; the {best} confirmed is {setup}."


def _of_search(
    filters: BoardFilters,
    metric: Metric,
    rankings: Sequence[leaderboard.Ranking],
    scores: Sequence[HardwareScore],
) -> str:
    """``Apple M4 Pro (20-core GPU) is 41st of 47 on mnist-cnn``, or its score of all workloads."""
    if not filters.is_of_hardware:
        return "Machines of the hardware that is searched for"
    search = filters.criteria.search
    own = [one for one in scores if search.names(one.hardware_slug)]
    own = [one for one in own if not one.published] or own
    if filters.workload is None and own:
        return _by_score(own, rankings, searched=True)
    found = [(row.rank, ranking, row) for ranking in rankings for row in ranking.shown if row.rank]
    if not found:
        return NOTHING_FOUND
    rank, ranking, row = min(found, key=lambda one: one[0])
    setup = row.figure.setup
    in_setup = f", {setup.framework} {setup.recipe}," if filters.group == "setup" else ""
    place = f"{people.ordinal(rank)} of {_ranked(filters, ranking)}"
    return f"{row.figure.hardware}{in_setup} is {place} on {ranking.workload.name}{_by(metric)}"


def _by(metric: Metric) -> str:
    """``, by Energy``: the metric of a rank, where it is not speed."""
    return "" if metric.value in ("throughput", "time") else f", by {metric.label}"


def _firsts(rankings: Sequence[leaderboard.Ranking]) -> dict[str, Figure]:
    """The figure with the best rank on each board, of the family if there is one."""
    ranked = {
        ranking.workload.name: {row.rank: row.figure for row in ranking.shown if row.rank}
        for ranking in rankings
    }
    return {workload: rows[min(rows)] for workload, rows in ranked.items() if rows}


def _by_score(
    scores: Sequence[HardwareScore],
    rankings: Sequence[leaderboard.Ranking],
    *,
    searched: bool = False,
    alone: bool = False,
) -> str:
    """``H200 trains 31.0 times as fast as i7-8700``. ``alone``: no other hardware is on a board."""
    best = scores[0]
    score = best.score
    by_one = _by_one(best, rankings)
    if best.hardware_slug == score.baseline_slug and searched:
        return f"{best.hardware} is the baseline: its speed is 1×"
    if best.hardware_slug == score.baseline_slug:
        only = "only hardware" if alone else "only hardware with a score"
        if len(scores) > 1:
            return f"{best.hardware} is the fastest so far{by_one}"
        return f"{best.hardware} is the {only} so far"
    why = ", as published" if best.published else ""
    some = f", in {score.covered} of {score.terms} workloads" if score.missing else why
    verb, _, ratio = people.faster_than(score.value or 1, "trains").partition(" ")
    about = "about " if by_one and not some else ""
    return f"{best.hardware} {verb} {about}{ratio} {score.baseline}{some}{by_one}"


def _by_one(best: HardwareScore, rankings: Sequence[leaderboard.Ranking]) -> str:
    """``, measured by one owner``, in a part of the workloads or in all."""
    if best.score.backing != "one":
        return ""
    own = [row.figure for one in rankings for row in one.rows if not row.figure.held]
    more = any(one.backing != "one" for one in own if one.hardware_slug == best.hardware_slug)
    return f", {'in part ' * more}{BY_ONE_OWNER}"
