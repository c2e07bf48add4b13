"""``/frameworks``: the frameworks and recipes of one hardware."""

from collections import Counter

from sqlmodel import Session

from ....answers.studies import FrameworksAnswer, HardwareChoice, frameworks
from .common import StudyPage, form, hardware_field, sureness, twin


def frameworks_page(session: Session, choice: HardwareChoice) -> StudyPage:
    """Fill the context. Raises NotFound if the hardware has no figures."""
    answer = frameworks(session, choice)
    return StudyPage(
        title="Frameworks",
        heading=_fastest_framework(answer),
        json_href=twin("frameworks", choice),
        answer=answer,
        form=form(hardware_field(session, answer.hardware_slug)),
    )


def _fastest_framework(answer: FrameworksAnswer) -> str:
    """``On A100, jax is the fastest framework in 6 of 8 workloads``: of those in several. Where the
    first is not clearly faster, no framework is the fastest."""
    leaders = [table.rows[0] for table in answer.tables if len(table.rows) > 1]
    if not leaders:
        return "Which framework is fastest?"
    clear = [row for row in leaders if row.best is None or row.best.verdict_kind != "no_difference"]
    firsts = Counter(row.framework for row in clear)
    if not firsts:
        return f"No framework is clearly the fastest on {answer.hardware}"
    (name, count), of = firsts.most_common(1)[0], len(leaders)
    workload = next(table.workload for table in answer.tables if len(table.rows) > 1)
    where = f"in {count} of {of} workloads" if of > 1 else f"in {workload}"
    verb, rest = sureness([row.best for row in clear if row.framework == name and row.best])
    like = "" if verb == "is" else " like"
    return f"{name} {verb}{like} the fastest framework {where} on {answer.hardware}{rest}"
