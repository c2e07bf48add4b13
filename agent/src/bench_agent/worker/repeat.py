"""One repeat, phase by phase, and its outcome when a phase fails. :mod:`.stopwatch` times it."""

import os
import platform
import traceback
from collections.abc import Callable

from bench_protocol.catalogue import seeded
from bench_protocol.payload.machine import Environment
from bench_protocol.payload.result import (
    Evaluation,
    Failed,
    Gemm,
    Measured,
    Measurement,
    Phase,
    Placement,
    Startup,
    Warn,
)
from bench_protocol.training import accuracy, witness_steps

from .. import data
from ..base.messages import BlockDone, Job, PhaseBegan, WorkerEvent
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


class Repeat:
    """One repeat. It fills ``environment`` and ``warnings`` while it runs."""

    def __init__(
        self,
        job: Job,
        engine: Engine,
        tell: Callable[[WorkerEvent], None],
        clock: Callable[[], int],
    ) -> None:
        self.environment: Environment | None = None
        self.warnings: list[Warn] = []
        self._job = job
        self._engine = engine
        self._tell = tell
        self._clock = clock
        self._phase: Phase = "start"
        self._session: Session | None = None
        self._measured: Measurement | None = None
        self._samples: Data | None = None
        self._losses: witness.LossReadings | None = None
        self._steps_after: steps_after.StepsAfter | None = None
        self._drops_right = True
        self._data_digest: str | None = None
        self._frozen_weights = pretrained.GENERATED

    def run(self) -> Measured | Failed:
        """Measure the cell. If a phase fails, the outcome says which and keeps earlier figures."""
        try:
            self._measured = self._measure(self._start())
            self._measured = self._witnessed(self._measured)
            self._measured = self._traced(self._measured)
            self._measured = self._evaluated(self._measured)
            # Last, because they train the timed session on.
            self._steps_after = steps_after.train(self._open_session(), self._time)
            self._measured = self._rewound(self._measured)
            return self._judged(self._measured)
        except Exception as error:
            traceback.print_exc()
            return Failed(
                kind=failures.kind_of(error, self._phase),
                phase=self._phase,
                exception_class=failures.class_of(error),
                measurement=self._measured,
            )
        finally:
            self._close()

    def _start(self) -> Startup:
        """Import, data, build, first step: each timed separately."""
        job, engine, clock = self._job, self._engine, self._clock
        self._enter("import")
        began = clock()
        engine.load(job.workload, job.cell)
        if job.form:
            forms.take(engine, job.form.name)
        import_ns = clock() - began
        self.environment = environment.describe(engine)

        self._enter("data")
        began = clock()
        self._samples = self._data()
        weights, self._frozen_weights = pretrained.with_pretrained(
            job.workload,
            seeded.initial_weights(job.workload, job.seed),
            pretrained.chosen_file(os.environ) if job.workload.frozen_layers else None,
        )
        data_ns = clock() - began

        self._enter("build")
        began = clock()
        self._session = engine.open(job.workload, job.cell, weights, self._samples)
        self._session.sync()
        build_ns = clock() - began
        # Again: the Metal probe may have switched off the plug-in's remapper.
        self.environment = environment.describe(engine)

        self._enter("warm_up")
        began = clock()
        self._session.train_block(1)
        self._session.sync()
        first_step_ns = clock() - began
        steps = witness_steps.witness_steps(job.workload, job.cell.batch_size)
        self._losses = witness.LossReadings(self._session, steps)
        self._losses.read()
        return Startup(
            import_ns=max(1, import_ns),
            data_ns=max(1, data_ns),
            build_ns=max(1, build_ns),
            first_step_ns=max(1, first_step_ns),
        )

    def _data(self) -> Data:
        """All samples, also for a short repeat, so that they do not fit into a cache."""
        data_set = self._job.workload.data_set
        train, *_, test = splits = data.load(data_set, self._job.cell.data)
        self._data_digest = seeded.data_digest(*splits)
        order = seeded.order(data_set.train_samples, 0, self._job.seed)
        return Data(*train, *test, order)

    def _measure(self, startup: Startup) -> Measurement:
        job, session, losses = self._job, self._open_session(), self._loss_readings()
        blocks = measure(
            session,
            job.timing,
            job.workload.steps_per_epoch(job.cell.batch_size),
            clock=self._clock,
            on_block=self._tell_block,
            on_timing=lambda: self._enter("timing"),
            first_calls=losses.calls,
            after_first_call=losses.read,
        )
        loss = witness.finite(session.loss())
        return Measurement(
            startup=startup,
            blocks=blocks,
            layers=session.layers,
            parameter_count=session.parameter_count(),
            last_loss=loss,
            # Read before the matrix product and the evaluation, which need more memory.
            peak_memory_bytes=session.peak_memory_bytes(),
            host_peak_memory_bytes=failures.host_peak_memory_bytes(),
            data_digest=self._data_digest,
            gemm=self._gemm(),
            placement=self._placement(session),
            recipe_settings=self._recipe_settings(session),
        )

    def _witnessed(self, measurement: Measurement) -> Measurement:
        """The measurement with the witness of the timed session."""
        job, samples = self._job, self._all_samples()
        self._enter("conformance")
        recorded = witness.read(
            self._open_session(), job.workload, job.seed, samples, self._loss_readings()
        )
        self._drops_right = witness.scales_what_it_keeps(
            self._open_session(), job.workload, samples
        )
        return measurement.model_copy(update={"witness": recorded})

    def _rewound(self, measurement: Measurement) -> Measurement:
        """The measurement with the witness's second reading."""
        job, recorded = self._job, measurement.witness
        if recorded is None:
            raise RuntimeError("there is no first reading")
        self._enter("conformance")
        again = witness.rewound(
            self._open_session(),
            job.workload,
            job.seed,
            self._all_samples(),
            job.cell.batch_size,
            recorded.steps,
        )
        recorded = recorded.model_copy(update={"rewound": again})
        return measurement.model_copy(update={"witness": recorded})

    def _traced(self, measurement: Measurement) -> Measurement:
        """The measurement with the conformance traces, trained in this process by the cell's step.

        They run after the timing. Before it, the memory that they leave behind slowed the blocks of
        small models by 1 to 2 % (docs/adr/0008).
        """
        job = self._job
        traces = conformance_trace.all_of(self._engine, job.workload, job.cell, job.nonce)
        masks_change = conformance_trace.masks_change(self._engine, job.workload, job.cell)
        self._drops_right = self._drops_right and masks_change
        return measurement.model_copy(update={"traces": traces})

    def _judged(self, measurement: Measurement) -> Measured | Failed:
        """The outcome: measured, or failed because the training was wrong."""
        if measurement.last_loss is None:
            return Failed(kind="diverged", phase="timing", measurement=measurement)
        right_count = measurement.parameter_count == self._job.workload.parameter_count
        if not (right_count and measurement.placement.matches):
            return Failed(kind="wrong_result", phase="build", measurement=measurement)
        after = self._steps_after
        if not witness.counts_all_steps(measurement) or not (after and after.right):
            print(f"steps after the timing: {after}", flush=True)
            return Failed(kind="wrong_result", phase="timing", measurement=measurement)
        cell, workload, recorded = self._job.cell, self._job.workload, measurement.witness
        machine = platform.machine()
        if recorded and not witness.repeats_itself(cell, workload, recorded, machine):
            print(f"the timed session does not repeat its first losses: {recorded}", flush=True)
            return Failed(kind="wrong_result", phase="timing", measurement=measurement)
        verdict = conformance_trace.judged(
            cell, workload, measurement.traces, machine, self._job.nonce
        )
        if verdict.kind == "wrong_result" or not self._drops_right:
            print(f"traces: {verdict}; dropout is right: {self._drops_right}", flush=True)
            return Failed(kind="wrong_result", phase="conformance", measurement=measurement)
        return self._judged_accuracy(measurement)

    def _judged_accuracy(self, measurement: Measurement) -> Measured | Failed:
        workload, evaluation = self._job.workload, measurement.evaluation
        verdict = accuracy.judge(
            workload,
            measurement,
            batch_size=self._job.cell.batch_size,
        ).verdict
        if verdict == "diverged":
            return Failed(kind="diverged", phase="evaluate", measurement=measurement)
        if evaluation and evaluation.epochs == workload.epochs and verdict != "within":
            self.warnings.append(Warn(code=verdict))
        return Measured(measurement=measurement)

    def _recipe_settings(self, session: Session) -> dict[str, str]:
        frozen = (
            {"frozen_weights": self._frozen_weights} if self._job.workload.frozen_layers else {}
        )
        return {**session.settings, **frozen, **forms.settings(self._job.form)}

    def _placement(self, session: Session) -> Placement:
        reported = session.placement()
        says_cpu = "cpu" in reported.lower()
        matches = says_cpu == (self._job.cell.device.kind == "cpu")
        return Placement(reported=reported[:200], matches=matches)

    def _evaluated(self, measurement: Measurement) -> Measurement:
        """The measurement with its score on the test samples, if whole epochs were trained."""
        if self._job.timing.epochs is None:
            return measurement
        steps_per_epoch = self._job.workload.steps_per_epoch(self._job.cell.batch_size)
        epochs = measurement.blocks.steps // steps_per_epoch
        self._enter("evaluate")
        samples = self._all_samples()
        loss, share_right = self._open_session().evaluate(samples.test_x, samples.test_y)
        evaluation = Evaluation(
            epochs=epochs,
            samples=self._job.workload.data_set.test_samples,
            loss=witness.finite(loss),
            accuracy=share_right,
        )
        return measurement.model_copy(update={"evaluation": evaluation})

    def _gemm(self) -> Gemm | None:
        """The process's matrix product; None with a warning if it fails."""
        try:
            return matrix_product.fastest(self._engine, self._job.cell.precision, self._time)
        except Exception as error:  # the measurement does not depend on it
            traceback.print_exc()
            name = failures.class_of(error)
            self.warnings.append(Warn(code="gemm_failed", figures={"exception_class": name}))
            return None

    def _time(self, action: Callable[[], object]) -> int:
        began = self._clock()
        action()
        return self._clock() - began

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._tell(PhaseBegan(phase=phase))

    def _tell_block(self, duration_ns: int, steps: int, share_done: float) -> None:
        self._tell(BlockDone(duration_ns=duration_ns, steps=steps, share_done=share_done))

    def _open_session(self) -> Session:
        if self._session is None:
            raise RuntimeError("no session is open")
        return self._session

    def _all_samples(self) -> Data:
        if self._samples is None:
            raise RuntimeError("no data was made")
        return self._samples

    def _loss_readings(self) -> witness.LossReadings:
        if self._losses is None:
            raise RuntimeError("no step was trained")
        return self._losses

    def _close(self) -> None:
        try:
            if self._session is not None:
                self._session.close()
        except Exception:  # the answer is complete and the process ends anyway
            traceback.print_exc()
