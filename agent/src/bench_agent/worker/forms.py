"""Measure one form of a cell's step (docs/adr/0025): how long it takes, and whether it is right."""

from collections.abc import Callable

from bench_protocol.catalogue import seeded

from .. import data
from ..base.messages import LOCAL_NONCE, FormAnswer, FormChoice, FormTask, Timing
from ..engines.seam import Data, Engine, HasForms
from . import conformance_trace, stopwatch

# Blocks of 0.1 s until two agree, after the first step, which compiles.
TIMING = Timing(warm_up_seconds=0.4, block_seconds=0.1)


def take(engine: Engine, form: str) -> None:
    """Have an engine open its next sessions in a form.

    Raises:
        LookupError: the engine has no forms.
    """
    if not isinstance(engine, HasForms):
        raise LookupError(f"{engine.name} has no forms")
    engine.form = form


def settings(choice: FormChoice | None) -> dict[str, str]:
    """The choice in words, for the settings of the recipe in a result."""
    if choice is None:
        return {}
    return {"form": choice.name, **{f"form.{name}": text for name, text in choice.tried.items()}}


def measure(engine: Engine, task: FormTask, clock: Callable[[], int]) -> FormAnswer:
    """Time the step on the cell's data, then train a trace and look whether dropout masks change.

    Raises:
        Exception: what the framework raises where it cannot run the form.
    """
    workload, cell = task.workload, task.cell
    engine.load(workload, cell)
    take(engine, task.form)
    train, *_, test = data.load(workload.data_set, cell.data)
    order = seeded.order(workload.data_set.train_samples, 0, seeded.DEFAULT_SEED)
    weights = seeded.initial_weights(workload, seeded.DEFAULT_SEED)
    session = engine.open(workload, cell, weights, Data(*train, *test, order))
    try:
        session.train_block(1)
        session.sync()
        steps_per_epoch = workload.steps_per_epoch(cell.batch_size)
        step_ns = stopwatch.step_ns(session, TIMING, steps_per_epoch, clock)
    finally:
        session.close()
    return FormAnswer(
        step_ns=step_ns,
        trace=conformance_trace.trace(
            engine, workload, cell, "workload", cell.precision, LOCAL_NONCE
        ),
        masks_change=conformance_trace.masks_change(engine, workload, cell),
    )
