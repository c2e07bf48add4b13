"""Post the results of a run between its repeats, each under a fresh challenge of the server."""

from contextlib import suppress
from dataclasses import replace

from ..base.errors import ServerUnreachable
from ..remote.client import Client, IssuedChallenge, ServerRefused
from ..remote.outbox import Outbox
from ..remote.rank import machine_rank
from ..remote.submit import submit
from .context import RunContext
from .sign import RunIdentity
from .summary import RunSummary

NO_RANK = "what is measured without its challenge can never be ranked"
# A challenge is renewed before its remaining time is too short for the next repeat.
RENEW_AFTER_SHARE = 0.5


class Posting:
    """Posts pending results. After a server did not answer, it waits for the end of the run."""

    def __init__(self, context: RunContext, run: RunIdentity, summary: RunSummary) -> None:
        server, home, token = context.server, context.home, context.token
        self._client = Client(server, run.key, home, token=token) if server else None
        self._issued: IssuedChallenge | None = None
        self._newest: str | None = None  # id of the result that was sent last
        self._run_id = run.run_id
        self._outbox = Outbox(home.outbox)
        self._reporter, self._new_clock = context.reporter, context.new_clock
        self._summary = summary

    def knock(self) -> None:
        """Check the server before the run, so that the user learns early if it is away."""
        if self._client:
            try:
                self._client.knock()
            except ServerUnreachable as error:
                self._reporter.unreachable(ServerUnreachable(f"{error}; {NO_RANK}"))
                self._summary.server_unreachable = True

    def bound(self, run: RunIdentity) -> RunIdentity:
        """The run's identity and clocks under a fresh challenge of the server.

        Both are renewed where the clocks jumped: the server compares them since the challenge.
        Without a server, or if it gives no challenge, the results stay at trust level 1.
        """
        jumped = bool(run.clock.jump_seconds())
        if jumped:  # a machine that woke may have its network back
            self._summary.server_unreachable = False
        if self._client is None or self._summary.server_unreachable:
            return replace(run, clock=self._new_clock()) if jumped else run
        used_seconds = run.clock.since_start_ns() / 1e9
        is_fresh = self._issued and used_seconds < RENEW_AFTER_SHARE * self._issued.fresh_seconds
        if is_fresh and not jumped:
            return run
        try:
            self._issued = self._challenge(self._client)
            challenge = self._issued.challenge
        except (ServerUnreachable, ServerRefused) as error:
            self._reporter.unreachable(ServerUnreachable(f"no challenge: {error}; {NO_RANK}"))
            self._issued, challenge = None, None
        return replace(run, challenge=challenge, clock=self._new_clock())

    def _challenge(self, client: Client) -> IssuedChallenge:
        try:
            return client.challenge(self._run_id)
        except ServerRefused as refusal:
            if refusal.problem.get("code") != "unknown_key":
                raise
        client.enroll()
        return client.challenge(self._run_id)

    def waiting(self) -> None:
        """Post the pending results, unless the server did not answer before."""
        if self._client and not self._summary.server_unreachable:
            self._post(self._client)

    def last_time(self) -> None:
        """Post the remaining results, even if the server did not answer before, and wait a few
        seconds for its pages to count them."""
        if not self._client:
            return
        self._post(self._client)
        if self._summary.server_unreachable and not list(self._outbox.pending()):
            self._summary.server_unreachable = False
        if self._newest:
            workloads = {result.cell.workload for result in self._summary.results}
            with suppress(ServerUnreachable, ServerRefused):
                self._summary.rank = machine_rank(self._client, self._newest, workloads)
        self._client.close()

    def _post(self, client: Client) -> None:
        try:
            for delivery in submit(client, self._outbox):
                if delivery.state == "sent":
                    self._summary.sent += 1
                    self._summary.sent_earlier += delivery.entry.run_id != self._run_id
                    self._summary.addresses.append(delivery.address(client.server))
                    self._newest = delivery.result_id
                self._summary.refused += delivery.state == "refused"
                self._reporter.delivered(delivery)
        except ServerUnreachable as error:
            if not self._summary.server_unreachable:
                self._reporter.unreachable(error)
            self._summary.server_unreachable = True
