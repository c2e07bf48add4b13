"""A witnessed run: a worker trains, the server takes the time, draws and recomputes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench_protocol.base.format import plural
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.training import speed_run
from bench_protocol.training.speed_run import SAMPLES_PER_SEGMENT

from ..base.errors import UsageProblem
from ..base.messages import Question, SpeedReady, SpeedReply, SpeedRunJob
from ..plan.plan import PlannedCell
from ..remote.speed_run import Opened, SpeedRunClient
from .patience import limits_for, place_of
from .worker_process import run_speed_run, worker_command

# The server may need minutes; its page shows the outcome later.
MOST_WAITS = 8


@dataclass(frozen=True)
class Witnessed:
    """How a witnessed run ended. ``samples_per_second``: by the server's clock;
    ``agents_samples_per_second``: by this machine's. ``state``: of the server's answer
    (``waiting``: it has not recomputed yet)."""

    state: str
    samples_per_second: int
    agents_samples_per_second: float
    segments: int
    reason: str | None = None
    log_index: int | None = None


def witness(
    planned: PlannedCell,
    client: SpeedRunClient,
    machine_hash: str,
    log: Path,
    say: Callable[[str], None],
) -> Witnessed:
    """Train and prove one witnessed run.

    Args:
        planned: :func:`cell_of` with its interpreter.
        say: shows a line to the user.

    Raises:
        ServerUnreachable, ServerRefused: the server did not take it.
        UsageProblem: the worker did not train it.
    """
    opened: Opened | None = None
    segments, training_ns = 0, 1

    def reply(question: Question) -> SpeedReply:
        nonlocal opened, segments, training_ns
        if isinstance(question, SpeedReady):
            say(f"training {plural(question.segments, 'segment')} of {speed_run.STEPS} steps")
            return SpeedReply(seed=client.begin())
        segments, training_ns = question.segments, question.training_ns
        opened = client.commit(
            question.root,
            segments,
            planned.cell.framework,
            planned.cell.device.kind,
            machine_hash,
            training_ns,
        )
        return SpeedReply(segments=opened.segments)

    place = place_of(planned)
    with TemporaryDirectory() as folder:
        job = SpeedRunJob(cell=planned.cell, folder=folder)
        command = worker_command(planned.python)
        answer = run_speed_run(job, log, limits_for(place, 0.0), command, reply)
        if answer.problem or opened is None:
            raise UsageProblem(f"{place} trained no witnessed run: {answer.problem}; see {log}")
        say(f"sending {len(opened.segments)} opened segments")
        for segment in opened.segments:
            client.upload(segment, (Path(folder) / f"{segment}.state").read_bytes())
    say("waiting for the server's recomputation")
    outcome = client.outcome()
    for _ in range(MOST_WAITS):
        if outcome.get("state") != "waiting":
            break
        outcome = client.outcome()
    return Witnessed(
        state=str(outcome.get("state")),
        samples_per_second=opened.samples_per_second,
        agents_samples_per_second=segments * SAMPLES_PER_SEGMENT * 1e9 / training_ns,
        segments=segments,
        reason=outcome.get("reason"),
        log_index=outcome.get("log_index"),
    )


def cell_of(planned: PlannedCell) -> PlannedCell:
    """The witnessed run's cell where a planned cell trains."""
    workload = speed_run.workload()
    cell = planned.cell
    return planned.model_copy(
        update={
            "workload": workload,
            "cell": Cell(
                workload=workload.name,
                workload_digest=workload.digest,
                framework=cell.framework,
                device=cell.device,
                recipe="tuned",
                batch_size=speed_run.BATCH_SIZE,
                precision="float32",
                data="generated",
            ),
        }
    )
