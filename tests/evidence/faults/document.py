"""docs/faults.md: the last full run."""

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import datetime

from . import table
from .run import Outcome

HEAD = """# Planted faults

`make faults` plants faults in the agent and runs each through a real worker process, with a real \
framework on the CPU, and a real server. This page is written by it: `make faults \
ARGS="--document docs/faults.md"`.

* *Caught*: the result does not count on any board. YES or NO in capitals is the wrong outcome: a \
fault that counts, or a control that does not.
* *Ranked with a doubt*: the result counts at a lower trust level than an honest one.
* *Controls* are honest runs of each cell that a fault uses, with default threads; faults have one.
* A *slip* needs no intent; a *cheat* knows when it is read, or invents what it sends. At least \
95 % of all faults must be caught, and every slip.
* Faults A to H are those of an audit of 2026-11-23, planted in the code as it is now; K, L, N and \
P are new.
* *Kept off by*: the proofs each of which alone keeps the fault off the boards. Each reading of \
the witness is compared as if the others were right.
"""


PROOFS = """A proof earns its place by the faults that it alone keeps off. *Seconds to read*: of \
its calls in the worker, median and range of the controls. *To recompute*: processor seconds of \
mnist-dense, fashion-mlp, mnist-cnn and fashion-lstm at their batch sizes, median and range. The \
other proofs read what is there."""

# What the page says until a full run has caught every slip of the present faults.
NO_RUN = "No full run has caught every slip since the faults were planted in readings."


def page(
    outcomes: Sequence[Outcome],
    recomputed: Mapping[str, Sequence[float]],
    at: datetime,
    seconds: float,
) -> str:
    """The page, from the outcomes of a full run. ``recomputed``: :func:`.table.by_proof`."""
    doubted = table.doubted(outcomes)
    left = [
        f"* {outcome.fault.name}, {outcome.fault.words}: "
        + ("ranked with a doubt" if outcome in doubted else outcome.fault.unseen or "see the table")
        for outcome in table.uncaught(outcomes)
    ]
    conditions = (
        f"{at:%Y-%m-%d}, {len(outcomes)} runs of one repeat each, n = 1, {seconds / 60:.0f} min, "
        f"two workers at a time on {os.cpu_count()} cores ({platform.machine()}, "
        f"{platform.system()}), load {os.getloadavg()[0]:.1f} at the end."
    )
    parts = (
        HEAD,
        f"## Last run\n\n{conditions}\n\n**{table.summary(outcomes)}.**",
        table.by_group(outcomes),
        f"## Proofs\n\n{PROOFS}\n\n{table.by_proof(outcomes, recomputed)}",
        "## Not caught\n\n" + ("\n".join(left) or "None."),
        f"## Every fault\n\n{table.markdown(outcomes)}",
    )
    return "\n\n".join(part.strip() for part in parts) + "\n"
