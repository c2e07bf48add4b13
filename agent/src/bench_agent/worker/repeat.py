"""One repeat, phase by phase, and its outcome when a phase fails. :mod:`.stopwatch` times it."""

import os
import traceback
from collections.abc import Callable
from typing import Any

from bench_protocol.base.units import plain_text
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.machine import Environment
from bench_protocol.payload.result import (
    Blocks,
    Evaluation,
    Failed,
    FailureKind,
    Gemm,
    Measured,
    Measurement,
    Phase,
    Placement,
    Startup,
    Warn,
)
from bench_protocol.training import accuracy, loss_by_steps

from .. import data
from ..base.messages import Answer, BlockDone, Job, PhaseBegan, WorkerEvent
from ..engines.seam import Data, Engine, Session, WrongResult
from . import environment, failures, forms, matrix_product, pretrained, steps_after, witness
from .stopwatch import measure


def run(
    job: Job, engine: Engine, tell: Callable[[WorkerEvent], None], clock: Callable[[], int]
) -> Answer:
    """Measure a cell. If a phase fails, the outcome says which and keeps earlier figures. ``tell``:
    receives phases and blocks as they happen. ``clock``: monotonic, in nanoseconds."""
    workload, cell = job.workload, job.cell
    steps_per_epoch = workload.steps_per_epoch(cell.batch_size)
    phase: Phase = "start"
    software: Environment | None = None
    session: Session | None = None
    measurement: Measurement | None = None
    # Evidence that is read and trained after the timing, by member of the measurement.
    later: dict[str, Any] = {}
    warnings: list[Warn] = []

    def enter(entered: Phase) -> None:
        nonlocal phase
        phase = entered
        tell(PhaseBegan(phase=phase))

    def timed(action: Callable[[], object]) -> int:
        began = clock()
        action()
        return clock() - began

    def block_done(duration_ns: int, steps: int, share_done: float) -> None:
        tell(BlockDone(duration_ns=duration_ns, steps=steps, share_done=share_done))

    try:
        enter("import")
        began = clock()
        engine.load(workload, cell)
        if job.form:
            forms.take(engine, job.form.name)
        import_ns = clock() - began
        software = environment.describe(engine)

        enter("data")
        began = clock()
        samples, digest = _samples(job)
        weights, frozen_weights = pretrained.with_pretrained(
            workload,
            seeded.initial_weights(workload, job.seed),
            pretrained.chosen_file(os.environ) if workload.frozen_layers else None,
        )
        data_ns = clock() - began

        enter("build")
        began = clock()
        session = engine.open(workload, cell, weights, samples)
        session.sync()
        build_ns = clock() - began
        evaluated = witness.evaluated_start(session, workload, cell, samples)
        # Describe again: the Metal probe may have switched off the plug-in's remapper.
        software = environment.describe(engine)

        enter("warm_up")
        began = clock()
        session.train_block(1)
        session.sync()
        first_step_ns = clock() - began
        start_loss = witness.start_loss(session, evaluated)
        # Free the weights here: earlier would change the first step's memory, later the blocks'.
        del weights
        blocks = measure(
            session,
            job.timing,
            steps_per_epoch,
            clock=clock,
            on_block=block_done,
            on_timing=lambda: enter("timing"),
        )
        if session.repeated_epochs:
            raise WrongResult(f"{session.repeated_epochs} epochs are not shuffled")
        frozen = {"frozen_weights": frozen_weights} if workload.frozen_layers else {}
        measurement = Measurement(
            startup=Startup(
                import_ns=max(1, import_ns),
                data_ns=max(1, data_ns),
                build_ns=max(1, build_ns),
                first_step_ns=max(1, first_step_ns),
            ),
            blocks=blocks,
            last_loss=witness.finite(session.loss()),
            layers=session.layers,
            parameter_count=session.parameter_count(),
            # Read before the matrix product and the evaluation, which need more memory.
            peak_memory_bytes=session.peak_memory_bytes(),
            host_peak_memory_bytes=failures.host_peak_memory_bytes(),
            data_digest=digest,
            placement=_placement(session, cell),
            recipe_settings={**session.settings, **frozen, **forms.settings(job.form)},
        )

        # What follows needs no more than the trained session, and adds nothing to a block.
        enter("evaluate")
        later["evaluation"] = _evaluation(session, job, samples, blocks)
        enter("reading")
        calls = witness.Calls(blocks.steps_per_block, timed, blocks)
        later["witness"] = witness.read(session, workload, cell, job.seed, start_loss, calls)
        left = steps_after.share_left(session, blocks.steps_per_block, timed)
        # Last: it takes all cores, and threads that the session was not timed with stay.
        later["gemm"] = _gemm(engine, cell, timed, warnings)
        measurement = measurement.model_copy(update=later)
        outcome = _judged(job, measurement, left, warnings)
    except Exception as error:
        known = measurement.model_copy(update=later) if measurement else None
        outcome = failures.failed(error, phase, known)
    finally:
        _close(session)
    return Answer(outcome=outcome, environment=software, warnings=tuple(warnings))


def _samples(job: Job) -> tuple[Data, str]:
    """All samples, also for a short repeat, so that they do not fit into a cache; their digest."""
    data_set = job.workload.data_set
    train, *_, test = splits = data.load(data_set, job.cell.data)
    order = seeded.order(data_set.train_samples, 0, job.seed)
    return Data(*train, *test, order), seeded.data_digest(*splits)


def _gemm(
    engine: Engine, cell: Cell, timed: Callable[[Callable[[], object]], int], warnings: list[Warn]
) -> Gemm | None:
    """The process's matrix product; None with a warning if it fails."""
    try:
        return matrix_product.fastest(engine, cell.precision, timed)
    except Exception as error:  # the measurement does not depend on it
        traceback.print_exc()
        name = failures.class_of(error)
        warnings.append(Warn(code="gemm_failed", figures={"exception_class": name}))
        return None


def _placement(session: Session, cell: Cell) -> Placement:
    reported = session.placement()
    matches = ("cpu" in reported.lower()) == (cell.device.kind == "cpu")
    return Placement(reported=plain_text(reported), matches=matches)


def _evaluation(session: Session, job: Job, data: Data, blocks: Blocks) -> Evaluation:
    """Loss and accuracy: of the whole test split after whole epochs, else of some samples."""
    workload, epochs = job.workload, 0
    samples = loss_by_steps.evaluated_samples(workload)
    if job.timing.epochs is not None:
        epochs = blocks.steps // workload.steps_per_epoch(job.cell.batch_size)
        samples = workload.data_set.test_samples
    loss, share_right = session.evaluate(data.test_x[:samples], data.test_y[:samples])
    return Evaluation(
        epochs=epochs, samples=samples, loss=witness.finite(loss), accuracy=share_right
    )


def _judged(
    job: Job, measurement: Measurement, left: float, warnings: list[Warn]
) -> Measured | Failed:
    """Measured, or failed because the training was wrong. The server compares the readings with
    their recomputation, which would take seconds here."""
    workload, cell = job.workload, job.cell

    def failed(kind: FailureKind, phase: Phase, why: object) -> Failed:
        print(f"{kind}: {why}", flush=True)
        return Failed(kind=kind, phase=phase, measurement=measurement)

    if measurement.last_loss is None:
        return failed("diverged", "timing", "the last loss is no number")
    if measurement.parameter_count != workload.parameter_count:
        return failed("wrong_result", "build", f"{measurement.parameter_count} parameters")
    if not measurement.placement.matches:
        return failed("wrong_result", "build", measurement.placement)
    if not witness.counts_all_steps(measurement) or left > steps_after.MOST_LEFT:
        why = f"{measurement.witness}; {left:.2f} of a call are left after its synchronisation"
        return failed("wrong_result", "timing", why)
    trained = accuracy.judge(workload, measurement, cell.batch_size)
    if trained.verdict == "diverged":
        return failed("diverged", "evaluate", trained)
    evaluation = measurement.evaluation
    if evaluation and evaluation.epochs == workload.epochs and trained.verdict != "within":
        warnings.append(Warn(code=trained.verdict))
    return Measured(measurement=measurement)


def _close(session: Session | None) -> None:
    try:
        if session is not None:
            session.close()
    except Exception:  # the answer is complete and the process ends anyway
        traceback.print_exc()
