"""Open a session outside of a repeat: to measure a form of the cell's step (docs/adr/0025), or for
its readings alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench_protocol.catalogue import nonces, seeded
from bench_protocol.payload.witness import Witness

from .. import data
from ..base.messages import LOCAL_NONCE, FormAnswer, FormChoice, FormTask, ReadTask, Timing
from ..engines.seam import Data, Engine, HasForms, Session
from . import stopwatch, witness

# Blocks of 0.1 s until two agree, after the first step, which compiles.
TIMING = Timing(warm_up_seconds=0.4, block_seconds=0.1)
# Calls of readings that are not timed: longer than any unrolled body (16), and not a multiple.
STEPS_PER_CALL = 23


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
    """Time the step, then make the session's readings; on generated data, as they are recomputed.
    Raises what the framework raises where it cannot run the form."""
    workload, cell = task.workload, task.cell
    engine.load(workload, cell)
    take(engine, task.form)
    steps_per_epoch = workload.steps_per_epoch(cell.batch_size)
    with _opened(engine, task, LOCAL_NONCE) as (session, read):
        step_ns = stopwatch.step_ns(session, TIMING, steps_per_epoch, clock)
        steps = max(1, round(TIMING.block_seconds * 1e9 / step_ns))
        return FormAnswer(step_ns=step_ns, witness=read(steps))


def read(engine: Engine, task: ReadTask) -> tuple[Witness, dict[str, str]]:
    """Open a session, train some steps, and make its readings; also returns its settings. Raises
    what the framework raises where it cannot run the cell."""
    with _opened(engine, task, task.nonce) as (session, read):
        session.train_block(STEPS_PER_CALL)
        session.sync()
        return read(STEPS_PER_CALL), dict(session.settings)


@contextmanager
def _opened(
    engine: Engine, task: FormTask | ReadTask, nonce: str
) -> Iterator[tuple[Session, Callable[[int], Witness]]]:
    """A session after its first step, and what makes its readings from the steps of a call. Its
    data is generated, whatever the cell's: the readings are recomputed on it."""
    workload, cell = task.workload, task.cell
    seed = nonces.seed_of(nonce, workload.digest)
    train, *_, test = data.load(workload.data_set, "generated")
    samples = Data(*train, *test, seeded.order(workload.data_set.train_samples, 0, seed))
    session = engine.open(workload, cell, seeded.initial_weights(workload, seed), samples)
    try:
        evaluated = witness.evaluated_start(session, workload, cell, samples)
        session.train_block(1)
        session.sync()
        start_loss = witness.start_loss(session, evaluated)
        yield (
            session,
            lambda steps: witness.read(
                session, workload, cell, seed, start_loss, witness.Calls(steps, witness.untimed)
            ),
        )
    finally:
        session.close()
