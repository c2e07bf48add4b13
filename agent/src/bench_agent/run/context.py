"""Collaborators of a run beside its plan: the agent's folder, the user, the server, the machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..base.home import Home
from ..base.messages import Answer, FormChoice, Job
from ..plan.plan import PlannedCell
from .idle_gate import IdleGate
from .interrupt import Stop
from .reporter import Reporter
from .sign import RunClock
from .worker_process import Limits, Listener, run_task

RunJob = Callable[[Job, Path, Limits, Sequence[str], Listener], Answer]


@dataclass(frozen=True)
class RunContext:
    """The collaborators of a run, with their defaults.

    ``server``: results are posted there, with its read ``token`` where it is private.
    ``stop``: says, before each repeat, whether the user wants to stop.
    ``gate``: waits for an idle and cool machine before the first repeat, and for a cool one before
    the others.
    ``run_job``: measures a repeat.
    ``self_test``: the answer in place of a repeat whose device fails its self-test, or None; see
    :meth:`.self_test.SelfTests.refusal`.
    ``choose_form``: the form of a cell's step; see :meth:`.forms.Forms.choice`.
    ``new_clock``: starts the run's clock, again at each challenge.
    """

    home: Home
    reporter: Reporter
    server: str | None = None
    token: str | None = None
    stop: Stop = field(default_factory=Stop)
    gate: IdleGate = field(default_factory=IdleGate)
    run_job: RunJob = run_task
    self_test: Callable[[PlannedCell], Answer | None] = lambda planned: None
    choose_form: Callable[[PlannedCell], FormChoice | None] = lambda planned: None
    new_clock: Callable[[], RunClock] = RunClock
