"""Before a run: wait for an idle machine; at a terminal, ask what to do with a busy one."""

from dataclasses import replace

import typer

from ..output.console import SOFT, WARNING, complain
from ..plan.plan import Plan
from ..run.idle_gate import IDLE_AND_COOL, IdleGate, remaining
from ..run.interrupt import Stop
from .exits import Exit, stop
from .options import LONGEST_SECONDS

QUESTION = "Wait until that ends (w), measure anyway (m), or stop (s)?"


def idle_or_asked(plan: Plan, gate: IdleGate, yes: bool) -> IdleGate:
    """The gate of a run: as given, or the user's answer where the machine stays busy or hot.

    Nobody is asked without a terminal, with ``--yes`` and with ``--strict``: then the gate waits,
    and measures or stops, as the options say.
    """
    if yes or gate.strict or not typer.get_text_stream("stdin").isatty():
        return gate
    devices = [planned.cell.device for planned in plan.cells]
    device = next((device for device in devices if device.kind != "cpu"), devices[0])
    patient = gate
    while True:
        seen = patient.wait(device, IDLE_AND_COOL, lambda line: complain(line, SOFT), Stop())
        if not (why := remaining(seen, IDLE_AND_COOL)):
            return gate
        complain(f"{why}; figures measured now carry this warning", WARNING)
        answer = typer.prompt(QUESTION, default="w", err=True).strip().lower()[:1]
        if answer == "s":
            stop(Exit.NOT_IDLE, "Nothing was measured.")
        if answer == "m":
            return replace(gate, wait_seconds=0.0)
        patient = replace(gate, wait_seconds=LONGEST_SECONDS)
