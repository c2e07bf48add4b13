"""``run --help-others``: offer to measure what the server wants again."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from bench_protocol.payload.hardware import hardware_name, slug
from bench_protocol.payload.machine import Machine
from bench_protocol.trust.asks import WORDS

from ..base.terminal import write
from ..plan import asked
from ..plan.plan import Plan, Selection
from ..remote import asks
from .options import option


class Help(StrEnum):
    YES = "yes"
    NO = "no"
    ASK = "ask"


HelpOthers = Annotated[
    Help | None,
    option(
        "--help-others",
        "ANSWER",
        "yes, no or ask: also measure up to three set-ups that the server asks for, in at "
        "most a tenth of the run's time. Default: ask at a terminal, else no.",
    ),
]


def with_asked(
    made: Plan,
    lay_out: Callable[[Selection], Plan],
    server: str,
    token: str | None,
    machine: Machine,
    answer: Help | None,
) -> Plan:
    """The plan with the cells that the server asks for, if the user agrees.

    A server that does not answer within seconds asks for nothing.
    """
    terminal = typer.get_text_stream("stdin").isatty()
    if answer is Help.NO or (answer is not Help.YES and not terminal):
        return made
    slugs = {slug(hardware_name(machine, planned.cell.device)): None for planned in made.cells}
    offered = asked.choose(made, asks.wanted(server, token, slugs), lay_out)
    if not offered:
        return made
    write(f"{server} asks for {len(offered)} more:", err=True)
    for planned in offered:
        reason = WORDS[planned.asked.reason] if planned.asked else ""  # type: ignore[index]
        write(f"  {planned.cell}, about {planned.estimate_seconds:.0f} s: {reason}", err=True)
    if answer is not Help.YES and not typer.confirm("Measure them too?", default=False, err=True):
        return made
    return replace(made, asked=offered)
