"""Agents that measure and submit in a loop: the real outbox, batches, client and checkpoint
memory of ``bench-agent``; only the measured figures are invented."""

import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import httpx
from tests.fakes import results
from tests.fakes.outboxes import put
from tests.fakes.waiting import wait_for

from bench_agent.base.errors import LogContradiction, ServerUnreachable
from bench_agent.base.home import Home
from bench_agent.remote.client import Client, ServerRefused
from bench_agent.remote.outbox import Outbox
from bench_agent.remote.submit import submit
from bench_protocol.payload.result import Challenge

# A server asks to wait for up to 10 s. A fault lasts about as long, so agents ask more often.
LONGEST_WAIT_SECONDS = 0.3
REPEATS = 3
BOUND_SHARE = 0.2
DRAIN_SECONDS = 90.0
CROWD = 50


class Tally(httpx.HTTPTransport):
    """A transport that counts answers; ``unasked`` are those of 500 and more without a time to wait
    (Retry-After)."""

    def __init__(self) -> None:
        super().__init__(verify=False)  # loopback; reading certificates takes 20 ms of each agent
        self.statuses: Counter[int] = Counter()
        self.unasked: Counter[int] = Counter()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        self.statuses[response.status_code] += 1
        if response.status_code >= 500 and "retry-after" not in response.headers:
            self.unasked[response.status_code] += 1
        return response


class Agent(Thread):
    """One agent with a folder, key and outbox of its own.

    Args:
        pause_seconds: mean pause between two runs.
        retry_seconds: mean pause after a submission that failed.

    Attributes:
        idle: while it is set, the agent measures nothing, and submits what it has.
        is_done: it has been idle and its outbox is empty, or its checkpoint memory stopped it.
    """

    def __init__(
        self, home: Path, address: str, number: int, pause_seconds: float, retry_seconds: float
    ) -> None:
        super().__init__(daemon=True, name=f"agent {number}")
        self.home = Home(home)
        self.outbox = Outbox(self.home.outbox)
        self.key = results.private_key(number + 1)
        self.tally = Tally()
        self.clock_offset = timedelta(0)
        self.measured = 0
        self.acknowledged = 0
        self.contradiction: str | None = None
        self.stopped = Event()
        self.idle = Event()
        self.is_done = False
        self._machine = results.make_machine(seed=number + 1)
        self._random = random.Random(number)
        self._pause_seconds, self._retry_seconds = pause_seconds, retry_seconds
        self._address = address

    def run(self) -> None:
        """Enroll, then measure and submit until ``stopped`` is set."""
        client = self._client()
        try:
            self._until_done(lambda: self._enroll(client))
            while not self.stopped.is_set():
                idle = self.idle.is_set()
                if not idle:
                    self.measure(client)
                self._until_done(lambda: self._submit(client), once=True)
                self.is_done = idle and not any(self.outbox.pending())
                if idle:
                    self.stopped.wait(self._retry_seconds)
                else:
                    self.idle.wait(self._random.uniform(0, 2 * self._pause_seconds))
        except LogContradiction as error:
            self.contradiction, self.is_done = str(error), True
        finally:
            client.close()

    def measure(self, client: Client) -> None:
        """Put the results of a run into the outbox, some of them under a challenge."""
        run_id = f"{self._random.getrandbits(128):032x}"
        challenge = self._challenge(client) if self._random.random() < BOUND_SHARE else None
        for repeat in range(1, self._random.randint(1, REPEATS) + 1):
            result = results.make_result(
                key=self.key,
                machine=self._machine,
                step_ns=self._random.randrange(900_000, 1_100_000),
                run_id=run_id,
                repeat=repeat,
                challenge=challenge,
            )
            put(self.outbox, result, self.key)
            self.measured += 1

    def _client(self) -> Client:
        return Client(
            self._address,
            self.key,
            self.home,
            now=lambda: datetime.now(UTC) + self.clock_offset,
            sleep=lambda seconds: time.sleep(min(seconds, LONGEST_WAIT_SECONDS)),
            say=lambda _: None,
            transport=self.tally,
        )

    def _enroll(self, client: Client) -> None:
        client.enroll()
        assert client.checkpoints is not None
        client.checkpoints.agree(client.license())

    def _challenge(self, client: Client) -> Challenge | None:
        try:
            return client.challenge(secrets.token_hex(16)).challenge
        except (ServerUnreachable, ServerRefused):
            return None  # the agent goes on without one

    def _submit(self, client: Client) -> None:
        if any(self.outbox.pending()):
            for delivery in submit(client, self.outbox):
                self.acknowledged += delivery.state == "sent"

    def _until_done(self, step: Callable[[], None], once: bool = False) -> None:
        while not self.stopped.is_set():
            try:
                step()
            except LogContradiction:
                raise
            except (ServerUnreachable, ServerRefused):
                self.stopped.wait(self._random.uniform(0, 2 * self._retry_seconds))
            else:
                return
            if once:
                return


def start(count: int, folder: Path, address: str) -> list[Agent]:
    """Start agents, each in a folder below ``folder``, and wait until each has a receipt. A few ask
    as often as they can; of a crowd each asks like a real one, every few seconds."""
    pause_seconds, retry_seconds = (0.5, 0.05) if count < CROWD else (3.0, 5.0)
    agents = [
        Agent(folder / f"agent-{n}", address, n, pause_seconds, retry_seconds) for n in range(count)
    ]
    for agent in agents:
        agent.start()
    wait_for(lambda: all(agent.acknowledged for agent in agents), DRAIN_SECONDS)
    return agents


def rest(agents: Sequence[Agent]) -> None:
    """Let agents submit what they have, without measuring more."""
    for agent in agents:
        agent.idle.set()
    wait_for(lambda: all(agent.is_done for agent in agents), DRAIN_SECONDS)


def end(agents: Sequence[Agent]) -> None:
    """End agents."""
    for agent in agents:
        agent.stopped.set()
        agent.idle.set()
    for agent in agents:
        agent.join(60)


def acknowledged(agents: Sequence[Agent]) -> int:
    """Results that the agents have receipts for, so far."""
    return sum(agent.acknowledged for agent in agents)


def refused(agents: Sequence[Agent]) -> int:
    """Answers of 503 so far."""
    return sum(agent.tally.statuses[503] for agent in agents)
