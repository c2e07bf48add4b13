"""A workload's entry in ``measured_limits.json``, from the curves of its sessions."""

import json
import math
import platform
import re
from collections.abc import Sequence
from itertools import accumulate
from statistics import fmean

from bench_protocol.catalogue.workloads import Workload
from bench_protocol.recompute import generated_digest
from bench_protocol.training import loss_by_steps, measured_limits
from bench_protocol.training.measured_limits import Band, Curve, MeasuredLimits

from .learning_curves import Point

# Lowest accuracy and highest loss lie this share of the way from the mean at the end to what half
# of the steps reach, and at least as far as honest curves differ.
TOWARDS_HALF = 2 / 5
# A perfect model may be this much better, in accuracy and in loss, than random labels let it be.
ACCURACY_MARGIN, LOSS_MARGIN = 0.01, 0.05
# Standard deviations of the share of right labels in the test split.
DEVIATIONS = 2


def write(workload: Workload, sessions: Sequence[Sequence[Point]], date: str, command: str) -> None:
    """Put the entry of a workload in place of its present one; bands of real data stay."""
    made = entry(workload, sessions, date, command)
    generated = made.bands[0].data_digest
    others = measured_limits.limits_of(workload).bands
    kept = tuple(band for band in others if band.data_digest != generated)
    found = {**measured_limits.entries(), workload.name: made}
    found[workload.name] = made.model_copy(update={"bands": (*kept, *made.bands)})
    document = {name: one.model_dump(mode="json", exclude_none=True) for name, one in found.items()}
    text = re.sub(  # lists of numbers on one line
        r"\[[\d\s.,\[\]]+\]",
        lambda match: re.sub(r"(?<=\[) | (?=\])", "", " ".join(match[0].split())),
        json.dumps(document, indent=2),
    )
    measured_limits.FILE.write_text(text + "\n", "utf-8")
    measured_limits.entries.cache_clear()


def entry(
    workload: Workload, sessions: Sequence[Sequence[Point]], date: str, command: str
) -> MeasuredLimits:
    """The curve of the loss on the test split, and the band, of generated data.

    Args:
        sessions: the points of each session, at the same steps.
    """
    columns = list(zip(*sessions, strict=True))
    losses = [fmean(point.loss for point in column) for column in columns]
    points = zip((column[0].steps for column in columns), accumulate(losses, min), strict=True)
    n = len(sessions)
    source = f"Trainmark on a CPU ({platform.machine()}), {date}, n = {n}"
    return MeasuredLimits(
        workload_digest=workload.digest,
        curve=Curve(
            points=tuple((steps, round(loss, 3)) for steps, loss in points),
            source=source,
            command=command,
        ),
        bands=(_band(workload, columns, source, command),),
    )


def _band(
    workload: Workload, columns: Sequence[Sequence[Point]], source: str, command: str
) -> Band:
    data_set = workload.data_set
    half = next(column for column in columns if 2 * column[0].steps >= columns[-1][0].steps)
    (accuracy, loss), (half_accuracy, half_loss) = (
        (fmean(point.accuracy for point in column), fmean(point.loss for point in column))
        for column in (columns[-1], half)
    )
    wrong = loss_by_steps.RANDOM_LABELS * (1 - 1 / data_set.classes)
    if data_set.tokens:
        wrong = 1 - loss_by_steps.SUCCESSOR_SHARES[0]
    strays = DEVIATIONS * math.sqrt(wrong * (1 - wrong) / data_set.test_samples)
    floor = loss_by_steps.floor_of(data_set)
    spread = loss_by_steps.CURVE_SPREAD
    below = max(TOWARDS_HALF * (accuracy - half_accuracy), spread * (1 - wrong - accuracy))
    above = max(TOWARDS_HALF * (half_loss - loss), spread * (loss - floor))
    return Band(
        data_digest=generated_digest(data_set),
        lowest=round(max(0.0, accuracy - below), 3),
        highest=round(min(1.0, 1 - wrong + strays + ACCURACY_MARGIN), 3),
        loss=(round(floor - LOSS_MARGIN, 2), round(loss + above, 3)),
        source=source,
        command=command,
    )
