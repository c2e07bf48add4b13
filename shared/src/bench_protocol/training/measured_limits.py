"""Accuracy bands and loss curves of single workloads: what does not follow from a definition.

``measured_limits.json`` beside this module holds them, with their source and the command that
measures them again. Both are optional: ``python -m benchmarks.limits WORKLOAD`` measures them.
"""

from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from ..base.units import Finite, PositiveCount, Sha256, Share, Wire
from ..catalogue.workloads import Workload

FILE = Path(__file__).with_suffix(".json")
NO_BAND = (
    "No accuracy band was measured for this workload, so the accuracy is shown without a verdict."
)
NO_CURVE = (
    "No loss curve was measured for this workload, so the last loss is compared only with that of "
    "guessing."
)


class Band(Wire):
    """Accuracy on the test split of one data set, from ``lowest`` to ``highest``.

    ``data_digest`` as in :func:`bench_protocol.catalogue.seeded.data_digest`. ``loss``: lowest and
    highest loss on the test split; with it the band is of the default batch size. ``source``:
    origin, date and number of sessions, formatted for a sentence.
    """

    data_digest: Sha256
    lowest: Share
    highest: Share
    loss: tuple[Finite, Finite] | None = None
    source: str
    command: str | None = None
    note: str | None = None


class Curve(Wire):
    """Steps and the mean loss after them, on generated data at the default batch size."""

    points: tuple[tuple[PositiveCount, Finite], ...]
    source: str
    command: str


class MeasuredLimits(Wire):
    workload_digest: Sha256
    curve: Curve | None = None
    bands: tuple[Band, ...] = ()


ENTRIES = TypeAdapter(dict[str, MeasuredLimits])


@cache
def entries() -> dict[str, MeasuredLimits]:
    return ENTRIES.validate_json(FILE.read_bytes())


def limits_of(workload: Workload) -> MeasuredLimits:
    """What was measured for a workload as it is defined now; empty if nothing was."""
    entry = entries().get(workload.name)
    if entry is None or entry.workload_digest != workload.digest:
        return MeasuredLimits(workload_digest=workload.digest)
    return entry


def not_measured(workload: Workload) -> tuple[str, ...]:
    """What was not measured for a workload, a sentence each. In noise there is nothing to learn."""
    if workload.data_set.noise:
        return ()
    found = limits_of(workload)
    return (*(() if found.bands else (NO_BAND,)), *(() if found.curve else (NO_CURVE,)))
