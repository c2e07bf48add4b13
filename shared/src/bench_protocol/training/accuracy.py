"""Verdict on the accuracy and loss that a workload reaches after its own number of epochs.

A band catches training that is fast because it is wrong; it is no contest of accuracies, so it is
as wide as frameworks and seeds need. Bands of real data hold for all of a workload's batch sizes.
Generated data is learned slowly, so its bands are narrow, of the loss too, and hold for the default
batch size only.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from ..base.format import percent
from ..catalogue.workloads import Workload
from ..payload.result import Measurement
from .measured_limits import limits_of


@dataclass(frozen=True)
class AccuracyVerdict:
    """The verdict on an accuracy; ``sentence`` gives the figures for people."""

    verdict: Literal["within", "diverged", "accuracy_unchecked"]
    sentence: str


_unchecked = partial(AccuracyVerdict, "accuracy_unchecked")


def judge(workload: Workload, measured: Measurement, batch_size: int) -> AccuracyVerdict:
    """Compare an accuracy with its band; ``accuracy_unchecked`` where there is none."""
    evaluation = measured.evaluation
    if evaluation is None:
        return _unchecked("accuracy was not evaluated")
    if evaluation.epochs == 0:
        return _unchecked("no whole epoch was timed, so its accuracy has no band")
    reached = f"accuracy {percent(evaluation.accuracy)} after {evaluation.epochs} epochs"
    if evaluation.epochs != workload.epochs:
        return _unchecked(f"{reached}; bands are for {workload.epochs} epochs")
    bands = limits_of(workload).bands
    band = next((band for band in bands if band.data_digest == measured.data_digest), None)
    if band is None:
        of_what = "these data" if bands else "this workload"
        return _unchecked(f"{reached}; no accuracy band was measured for {of_what}")
    if band.loss is not None and batch_size != workload.batch_size:
        only = f"the band of generated data is for batch {workload.batch_size}"
        return _unchecked(f"{reached}; {only}")
    within = band.lowest <= evaluation.accuracy <= band.highest
    between = f"{percent(band.lowest)} to {percent(band.highest)} ({band.source})"
    sentence = f"{reached} lies {'within' if within else 'outside'} {between}"
    if band.loss is not None and within:
        low, high = band.loss
        loss = evaluation.loss
        within = loss is not None and low <= loss <= high
        shown = "not finite" if loss is None else f"{loss:.3g}"
        sentence += f"; the loss {shown} lies {'within' if within else 'outside'} {low} to {high}"
    return AccuracyVerdict("within" if within else "diverged", sentence)
