"""The journal: the plan of a run, on disk from its start to its end, so that the run can resume.

It does not list finished repeats: a repeat is finished when its envelope is in the outbox.
"""

from contextlib import suppress

from pydantic import ValidationError

from bench_protocol.base.units import Sha256, Wire
from bench_protocol.payload.result import RunId

from ..base.errors import HomeProblem
from ..base.home import Home, write_durably
from ..plan.plan import Plan, PlannedCell
from ..plan.presets import LIKE, PRESETS


class Journal(Wire):
    """A run that began: enough to make the same plan again."""

    run_id: RunId
    nonce: Sha256
    preset: str
    repeats: int
    cells: tuple[PlannedCell, ...]
    accuracy_passes: tuple[PlannedCell, ...]
    asked: tuple[PlannedCell, ...]

    def plan(self) -> Plan:
        preset = (PRESETS | LIKE)[self.preset]
        return Plan(preset, self.cells, (), self.repeats, self.accuracy_passes, asked=self.asked)


def new(run_id: str, nonce: str, plan: Plan) -> Journal:
    """The journal of a run that is not written to disk: the run cannot resume. ``nonce``: seeds the
    repeats that are measured without a challenge."""
    return Journal(
        run_id=run_id,
        nonce=nonce,
        preset=plan.preset.name,
        repeats=plan.repeats,
        cells=plan.cells,
        accuracy_passes=plan.accuracy_passes,
        asked=plan.asked,
    )


def begin(home: Home, run_id: str, nonce: str, plan: Plan) -> Journal:
    """Write the journal of a new run before its first repeat, in place of an earlier one.

    Raises:
        HomeProblem: it cannot be written.
    """
    journal = new(run_id, nonce, plan)
    write_durably(home.journal, journal.model_dump_json().encode())
    return journal


def unfinished(home: Home) -> Journal | None:
    """The journal of a run that did not end, or None.

    Raises:
        HomeProblem: it is damaged, or of another version.
    """
    try:
        journal = Journal.model_validate_json(home.journal.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        journal = None
    if journal is None or journal.preset not in PRESETS | LIKE:
        raise HomeProblem(
            f"{home.journal} is damaged, so the interrupted run cannot go on. Its finished "
            "results are in the outbox. To begin a new one, move that file away"
        )
    return journal


def end(home: Home, run_id: str) -> None:
    """Remove the journal of this run: it ended. Another run's journal stays."""
    with suppress(HomeProblem):
        journal = unfinished(home)
        if journal is not None and journal.run_id == run_id:
            home.journal.unlink(missing_ok=True)
