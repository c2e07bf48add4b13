"""A sleep or a step of the wall clock costs the repeat that was running, and no later one.

A run of the agent and the server's checks of a submission, on clocks that the test moves.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.agent.test_resume import OPEN, Quiet, begun, interrupt, measure

from bench_agent.base.errors import ServerUnreachable
from bench_agent.base.home import Home
from bench_agent.base.messages import Answer, Job
from bench_agent.remote.client import IssuedChallenge
from bench_agent.remote.outbox import Outbox
from bench_agent.remote.submit import Delivery
from bench_agent.run import journal, posting
from bench_agent.run.context import RunContext
from bench_agent.run.run import run_plan
from bench_agent.run.sign import RunClock
from bench_agent.run.summary import RunSummary
from bench_protocol.payload.result import Challenge
from bench_server.checks.submission import SubmissionFacts, of_submission

HOUR = 3600.0
AWAKE = datetime(2026, 11, 27, tzinfo=UTC)
REPEAT_SECONDS = 20.0
FRESH_SECONDS = 4 * HOUR


@dataclass(frozen=True)
class Jump:
    """Seconds that each clock goes on at once: the agent's two and the server's."""

    wall: float
    monotonic: float
    server: float


SET_FORWARD, SET_BACK = Jump(HOUR, 0, 0), Jump(-HOUR, 0, 0)
SLEEP, SLEEP_THAT_COUNTS = Jump(HOUR, 0, HOUR), Jump(HOUR, HOUR, HOUR)
SHORT_SLEEP = Jump(3, 0, 3)  # shorter than what the server lets pass in a long run


@dataclass
class World:
    """Clocks, a server that checks what arrives, and repeats in which clocks jump.

    ``jumps``: by the number of the measurement in which they happen; ``after``: by the number of
    results that have arrived. ``away_at``: the numbers of the challenges that the server is asked
    for in vain; ``takes_nothing_at``: that of a measurement whose result is sent in vain.
    """

    jumps: dict[int, tuple[Jump, ...]] = field(default_factory=dict)
    after: dict[int, Jump] = field(default_factory=dict)
    away_at: tuple[int, ...] = ()
    takes_nothing_at: int = 0
    wall: datetime = AWAKE
    monotonic_ns: int = 10**12
    server: datetime = AWAKE + timedelta(seconds=7)
    measured: int = 0
    issued: dict[str, datetime] = field(default_factory=dict)
    asked: int = 0
    effects: list[tuple[str, ...]] = field(default_factory=list)

    def passes(self, jump: Jump) -> None:
        self.wall += timedelta(seconds=jump.wall)
        self.monotonic_ns += round(jump.monotonic * 1e9)
        self.server += timedelta(seconds=jump.server)

    def clock(self) -> RunClock:
        return RunClock(lambda: self.wall, lambda: self.monotonic_ns)

    def run_job(self, job: Job, *others: Any) -> Answer:
        self.measured += 1
        for jump in self.jumps.get(self.measured, ()):
            self.passes(jump)
        self.passes(Jump(REPEAT_SECONDS, REPEAT_SECONDS, REPEAT_SECONDS))
        return measure(job)

    def challenge(self) -> IssuedChallenge:
        self.asked += 1
        if self.asked in self.away_at:
            raise ServerUnreachable("away")
        identity = f"{self.asked:032x}"
        self.issued[identity] = self.server
        made = Challenge(id=identity, nonce=identity * 2, server_origin="test")
        return IssuedChallenge(made, FRESH_SECONDS)

    def submitted(self, _client: Any, outbox: Outbox) -> Iterator[Delivery]:
        if self.measured == self.takes_nothing_at:
            raise ServerUnreachable("away")
        for entry in list(outbox.pending()):
            result = entry.result()
            facts = SubmissionFacts(self.server)
            if result.challenge:
                facts = replace(
                    facts, challenge="fresh", issued_at=self.issued[result.challenge.id]
                )
            failed = [one.effect for one in of_submission(result, facts) if not one.passed]
            self.effects.append(tuple(failed))
            yield Delivery(outbox.move(entry, "sent", {}), "sent", {"id": "r"})
        if jump := self.after.pop(len(self.effects), None):
            self.passes(jump)

    def run(
        self,
        home: Home,
        run_job: Callable[..., Answer] | None = None,
        server: str | None = "http://s",
    ) -> tuple[RunSummary, Quiet]:
        waiting, quiet = journal.unfinished(home), Quiet()
        assert waiting is not None
        context = RunContext(
            home, quiet, server, gate=OPEN, run_job=run_job or self.run_job, new_clock=self.clock
        )
        return run_plan(waiting, context), quiet


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    begun(home)  # 8 repeats
    return home


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()

    class Client:
        server = "http://s"

        def __init__(self, *about: object, **more: object) -> None: ...

        def knock(self) -> None: ...

        def challenge(self, run_id: str) -> IssuedChallenge:
            return made.challenge()

        def result_on_board(self, result_id: str) -> None: ...

        def close(self) -> None: ...

    monkeypatch.setattr(posting, "Client", Client)
    monkeypatch.setattr(posting, "submit", made.submitted)
    return made


@pytest.mark.parametrize(
    ("jumps", "lost"),
    [
        ({}, 0),
        ({1: (SET_FORWARD,)}, 1),
        ({3: (SET_BACK,)}, 1),
        ({3: (SLEEP,)}, 1),
        ({3: (SHORT_SLEEP,)}, 1),
        ({3: (SLEEP_THAT_COUNTS,)}, 0),
        ({8: (SET_FORWARD,)}, 1),
        ({2: (SET_FORWARD,), 5: (SET_BACK,), 7: (SLEEP,), 8: (SLEEP,)}, 4),
        ({2: (SET_FORWARD, SET_BACK)}, 0),
    ],
)
def test_no_repeat_is_lost(
    home: Home, world: World, jumps: dict[int, tuple[Jump, ...]], lost: int
) -> None:
    """The repeat in which the clocks jump is measured again, under a fresh challenge."""
    world.jumps = jumps
    summary, quiet = world.run(home)
    assert world.effects == [()] * 8
    assert (len(summary.results), world.measured, world.asked) == (8, 8 + lost, 1 + lost)
    said = [note for note in quiet.notes if "measured again" in note]
    assert len(said) == lost
    assert all("by 1 h 0 min" in note or "by 3 s" in note for note in said)


def test_a_machine_that_keeps_sleeping_loses_that_repeat_alone(home: Home, world: World) -> None:
    world.jumps = dict.fromkeys((2, 3, 4), (SLEEP,))
    _, quiet = world.run(home)
    assert world.effects == [(), ("stale",), *[()] * 6]
    assert world.measured == 10
    assert quiet.notes[-1] == (
        "the machine slept, or its clock was set forward, by 1 h 0 min: "
        "this repeat stays at trust level 1; the next ones do not"
    )


def test_a_user_who_wants_to_stop_waits_for_no_second_measurement(home: Home, world: World) -> None:
    world.jumps = {1: (SET_BACK,)}
    quiet, waiting = Quiet(), journal.unfinished(home)
    assert waiting is not None
    context = RunContext(home, quiet, "http://s", gate=OPEN, new_clock=world.clock)

    def run_job(job: Job, *others: Any) -> Answer:
        context.stop.requested = True
        return world.run_job(job)

    assert run_plan(waiting, replace(context, run_job=run_job)).interrupted
    assert (world.measured, world.effects) == (1, [("stale",)])
    assert "has a clock that was set back, by 1 h 0 min" in quiet.notes[-1]


def test_a_repeat_is_kept_where_its_second_measurement_is_interrupted(
    home: Home, world: World
) -> None:
    world.jumps = {2: (SET_BACK,)}

    def cut_off(job: Job, *others: Any) -> Answer:
        return interrupt() if world.measured == 2 else world.run_job(job)

    assert world.run(home, cut_off)[0].interrupted
    assert world.effects == [(), ("stale",)]


each_jump = pytest.mark.parametrize("jump", [SET_FORWARD, SET_BACK, SLEEP])


@each_jump
def test_a_jump_between_two_repeats_costs_none(home: Home, world: World, jump: Jump) -> None:
    world.after[3] = jump
    world.run(home)
    assert (world.effects, world.measured, world.asked) == ([()] * 8, 8, 2)


@each_jump
def test_a_run_that_is_resumed_after_a_jump(home: Home, world: World, jump: Jump) -> None:
    def cut_off(job: Job, *others: Any) -> Answer:
        return interrupt() if world.measured == 3 else world.run_job(job)

    assert world.run(home, cut_off)[0].interrupted
    world.passes(jump)
    world.jumps = {5: (jump,)}
    world.run(home)
    assert (world.effects, world.measured) == ([()] * 8, 9)


def test_without_a_server_nothing_is_measured_again_and_the_clocks_start_again(
    home: Home, world: World
) -> None:
    world.jumps = {2: (SET_BACK,), 5: (SLEEP,)}
    _, quiet = world.run(home, server=None)
    assert (world.measured, quiet.notes) == (8, [])
    results = [entry.result() for entry in Outbox(home.outbox).pending()]
    at, apart = datetime.fromisoformat, []
    for clocks in (result.clocks for result in results):
        wall = (at(clocks.signed) - at(clocks.run_started)).total_seconds()
        apart.append(abs(wall - clocks.signed_ns / 1e9) > 1)
    assert sorted(apart) == [False] * 6 + [True] * 2  # those that were running


@pytest.mark.parametrize(
    ("jumps", "away_at", "measured", "asked", "lost"),
    [
        ({2: (SLEEP,)}, (2,), 10, 3, 0),  # back at the end of the second measurement
        ({2: (SLEEP,)}, (2, 3), 9, 4, 1),  # back when the next repeat begins
        ({2: (SLEEP,), 3: (SLEEP,)}, (2,), 10, 3, 0),  # asleep again while it was away
        ({2: (SLEEP,), 3: (SLEEP,)}, (2, 3), 10, 4, 1),  # measured twice again: at most
        ({}, (1,), 8, 2, 1),  # no challenge was given before
    ],
)
def test_a_server_that_is_away_after_a_sleep_gives_a_challenge_when_it_is_back(
    home: Home,
    world: World,
    jumps: dict[int, tuple[Jump, ...]],
    away_at: tuple[int, ...],
    measured: int,
    asked: int,
    lost: int,
) -> None:
    """The repeat is measured again under it, at most twice."""
    world.jumps, world.away_at = jumps, away_at
    world.run(home)
    assert (world.measured, world.asked) == (measured, asked)
    assert [effects for effects in world.effects if effects] == [("stale", "stale")] * lost
    assert len(world.effects) == 8


def test_after_a_sleep_a_server_that_did_not_answer_is_asked_again(
    home: Home, world: World
) -> None:
    world.takes_nothing_at, world.jumps = 3, {5: (SLEEP,)}
    summary, _ = world.run(home)
    assert (len(world.effects), world.measured, world.asked) == (8, 9, 2)
    assert not any("stale" in effects for effects in world.effects)
    assert not summary.server_unreachable
