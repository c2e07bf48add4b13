"""Every planted fault, and the honest controls."""

from functools import cache

from ..fault import Fault
from . import (
    checks,
    clock,
    data,
    dropout,
    epochs,
    keyed,
    model,
    modern,
    optimiser,
    outside,
    resnet,
    sending,
    steps,
    synchronisation,
    timed,
)

FAULTS: tuple[Fault, ...] = tuple(
    sorted(
        (
            *optimiser.FAULTS,
            *model.FAULTS,
            *steps.FAULTS,
            *dropout.FAULTS,
            *synchronisation.FAULTS,
            *timed.FAULTS,
            *clock.FAULTS,
            *data.FAULTS,
            *sending.FAULTS,
            *resnet.FAULTS,
            *keyed.FAULTS,
            *epochs.FAULTS,
            *outside.FAULTS,
            *checks.FAULTS,
        ),
        key=lambda fault: (fault.group, int(fault.name[1:])),
    )
)

# A session of these takes minutes, so a run of all faults leaves them out.
BY_NAME: tuple[Fault, ...] = modern.FAULTS


def controls(faults: tuple[Fault, ...] = FAULTS) -> tuple[Fault, ...]:
    """An honest run of each cell that these faults use; names start with 0."""
    setups = dict.fromkeys(fault.setup for fault in (*FAULTS, *BY_NAME))
    used = {fault.setup for fault in faults}
    honest = (
        Fault(f"0-{number}", "none (control)", "-", setup) for number, setup in enumerate(setups, 1)
    )
    return tuple(control for control in honest if control.setup in used)


@cache
def fault_named(name: str) -> Fault:
    """A fault or a control.

    Raises:
        LookupError: there is none.
    """
    known = (*FAULTS, *BY_NAME)
    for fault in (*known, *controls(known)):
        if fault.name == name:
            return fault
    raise LookupError(f"no fault is named {name!r}")
