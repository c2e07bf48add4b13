"""Choose the form of a cell's step: each is measured on this machine, in a process of its own.

An engine has several forms where the fastest one depends on the machine (docs/adr/0025). A form
that fails, hangs, crashes or trains something else is left out, with the reason. The choice and its
figures are in the result.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from bench_protocol.base.units import plain_text
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.workloads import Workload

from ..base.home import Home
from ..base.messages import LOCAL_NONCE, FormAnswer, FormChoice, FormTask
from ..engines import engine_named
from ..engines.seam import HasForms
from ..plan import estimates
from ..plan.plan import PlannedCell
from ..remote.outbox import Outbox
from . import conformance
from .interrupt import Stop
from .patience import form_limits, place_of
from .worker_process import Limits, run_task, worker_command

LONGEST_WORDS = 200
RunForm = Callable[[FormTask, Path, Limits, Sequence[str]], FormAnswer]


class Forms:
    """The choices of this process, one a cell and command."""

    def __init__(
        self,
        home: Home,
        say: Callable[[str], None],
        run: RunForm = run_task,
        stop: Stop | None = None,
    ) -> None:
        self._home, self._say, self._run, self._stop = home, say, run, stop or Stop()
        self._choices: dict[tuple[Cell, tuple[str, ...]], FormChoice | None] = {}

    def choice(
        self, planned: PlannedCell, command: Sequence[str] | None = None
    ) -> FormChoice | None:
        """The form to run a cell in; None where it has one form only, or where its plain one gives
        no figures.

        Raises:
            KeyboardInterrupt: the user wants to stop.
            HomeProblem: a log cannot be written.
        """
        command = tuple(command or worker_command(planned.python))
        key = planned.cell, command
        if key not in self._choices:
            self._choices[key] = self._chosen(planned, command)
        return self._choices[key]

    def _chosen(self, planned: PlannedCell, command: Sequence[str]) -> FormChoice | None:
        cell, engine = planned.cell, engine_named(planned.cell.framework)
        forms = engine.forms(cell) if isinstance(engine, HasForms) else ()
        if not forms:
            return None
        limits = form_limits(place_of(planned), estimates.load(self._home.measured_times))
        self._say(f"measuring the forms of {cell}: {', '.join(forms)}")
        tried: dict[str, str] = {}
        right: dict[str, float] = {}
        for form in forms:
            self._stop.check()
            log = self._home.logs / "forms" / f"{cell.digest[:16]}-{form}.log"
            task = FormTask(workload=planned.workload, cell=cell, form=form)
            answer = self._run(task, log, limits, command)
            problem = why_not(answer, planned.workload, cell)
            if answer.step_ns is not None and not problem:
                right[form] = answer.step_ns
            words = f"left out: {problem}" if problem else f"{right[form] / 1e3:.1f} us a step"
            tried[form] = plain_text(words)[:LONGEST_WORDS]
            if not right:
                self._say(f"{cell}: the form {form} gave no figures ({tried[form]})")
                return None
        name = min(right, key=right.__getitem__)
        self._say(f"form {name}; " + "; ".join(f"{form}: {tried[form]}" for form in forms))
        return FormChoice(name=name, tried=tried)


def earlier_choice(outbox: Outbox, run_id: str, cell: Cell, repeat: int) -> FormChoice | None:
    """The form of the cell's earlier repeats in a run that resumes; None if they name none."""
    entries = (outbox.find(run_id, cell, number) for number in range(1, repeat))
    measured = (entry.result().measurement for entry in entries if entry)
    settings = next((one.recipe_settings for one in measured if one), {})
    if "form" not in settings:
        return None
    tried = {
        name.removeprefix("form."): text
        for name, text in settings.items()
        if name.startswith("form.")
    }
    return FormChoice(name=settings["form"], tried=tried)


def why_not(answer: FormAnswer, workload: Workload, cell: Cell) -> str | None:
    """Why a form is left out, or None. Its readings are compared with their recomputation."""
    if answer.problem:
        return answer.problem
    if answer.witness is None or answer.step_ns is None or answer.step_ns <= 0:
        return "no figures"
    verdict = conformance.judged(cell, workload, answer.witness, LOCAL_NONCE, {})
    return verdict.sentence if verdict.kind == "wrong_result" else None
