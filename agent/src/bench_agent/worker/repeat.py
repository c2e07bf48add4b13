"""One repeat, phase by phase, and its outcome when a phase fails. :mod:`.stopwatch` times it."""

import os
import platform
import traceback
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from bench_protocol.base.units import plain_text
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.machine import Environment
from bench_protocol.payload.result import (
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
from bench_protocol.training import accuracy, witness_steps, witness_verdict

from .. import data
from ..base.messages import Answer, BlockDone, Job, PhaseBegan, WorkerEvent
from ..engines.seam import Data, Engine, Session
from . import (
    conformance_trace,
    environment,
    failures,
    forms,
    matrix_product,
    pretrained,
    steps_after,
    witness,
)
from .stopwatch import measure


def run(
    job: Job, engine: Engine, tell: Callable[[WorkerEvent], None], clock: Callable[[], int]
) -> Answer:
    """Measure a cell. If a phase fails, the outcome says which and keeps earlier figures.

    Args:
        tell: receives phases and blocks as they happen.
        clock: monotonic, in nanoseconds.
    """
    workload, cell = job.workload, job.cell
    steps_per_epoch = workload.steps_per_epoch(cell.batch_size)
    steps = witness_steps.witness_steps(workload, cell.batch_size)  # losses are read after these
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
        # Describe again: the Metal probe may have switched off the plug-in's remapper.
        software = environment.describe(engine)

        enter("warm_up")
        began = clock()
        session.train_block(1)
        session.sync()
        first_step_ns = clock() - began
        losses = [witness.finite(session.loss())]
        # Free the weights here: earlier would change the first step's memory, later the blocks'.
        del weights
        blocks = measure(
            session,
            job.timing,
            steps_per_epoch,
            clock=clock,
            on_block=block_done,
            on_timing=lambda: enter("timing"),
            first_calls=[after - before for before, after in pairwise(steps)],
            after_first_call=lambda: losses.append(witness.finite(session.loss())),
        )
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
            gemm=_gemm(engine, cell, timed, warnings),
            placement=_placement(session, cell),
            recipe_settings={**session.settings, **frozen, **forms.settings(job.form)},
        )

        enter("conformance")
        recorded = witness.read(session, workload, job.seed, samples, steps, losses)
        later["witness"] = recorded
        drops_right = witness.scales_what_it_keeps(session, workload, samples)
        # Traces follow the timing: before it, the memory that they leave behind slowed the blocks
        # of small models by 1 to 2 % (docs/adr/0008).
        later["traces"] = conformance_trace.all_of(engine, workload, cell, job.nonce)
        masks_change = conformance_trace.masks_change(engine, workload, cell)

        if job.timing.epochs is not None:
            enter("evaluate")
            loss, share_right = session.evaluate(samples.test_x, samples.test_y)
            later["evaluation"] = Evaluation(
                epochs=blocks.steps // steps_per_epoch,
                samples=workload.data_set.test_samples,
                loss=witness.finite(loss),
                accuracy=share_right,
            )

        # These steps are last, because they continue to train the timed session.
        after = steps_after.train(session, timed)
        enter("conformance")
        again = witness.rewound(session, workload, job.seed, samples, cell.batch_size, steps)
        later["witness"] = recorded.model_copy(update={"rewound": again})
        measurement = measurement.model_copy(update=later)
        outcome = _judged(job, measurement, after, drops_right and masks_change, warnings)
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
    engine: Engine,
    cell: Cell,
    timed: Callable[[Callable[[], object]], int],
    warnings: list[Warn],
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


def _judged(
    job: Job,
    measurement: Measurement,
    after: steps_after.StepsAfter,
    dropout_is_right: bool,
    warnings: list[Warn],
) -> Measured | Failed:
    """The outcome: measured, or failed because the training was wrong."""
    workload, cell, machine = job.workload, job.cell, platform.machine()

    def failed(kind: FailureKind, phase: Phase, why: object) -> Failed:
        print(f"{kind}: {why}", flush=True)
        return Failed(kind=kind, phase=phase, measurement=measurement)

    if measurement.last_loss is None:
        return failed("diverged", "timing", "the last loss is no number")
    if measurement.parameter_count != workload.parameter_count:
        return failed("wrong_result", "build", f"{measurement.parameter_count} parameters")
    if not measurement.placement.matches:
        return failed("wrong_result", "build", measurement.placement)
    if not witness.counts_all_steps(measurement) or not after.right:
        return failed("wrong_result", "timing", f"steps after the timing: {after}")
    recorded = measurement.witness
    # Whether both readings agree as far as can be said without a reference.
    repeats = recorded and witness_verdict.judge(
        cell,
        workload,
        recorded.steps,
        recorded.losses,
        None,
        architecture=machine,
        rewound=recorded.rewound,
    )
    if repeats and repeats.kind == "wrong_result":
        return failed("wrong_result", "timing", f"the session does not repeat itself: {recorded}")
    verdict = conformance_trace.judged(cell, workload, measurement.traces, machine, job.nonce)
    if verdict.kind == "wrong_result" or not dropout_is_right:
        why = f"traces: {verdict}; dropout is right: {dropout_is_right}"
        return failed("wrong_result", "conformance", why)
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
