"""Submit the outbox: many envelopes a request, a receipt for each, one growth proof a batch."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from ..base.errors import ServerUnreachable
from .batch import LineAnswer, Pending, batches
from .client import Client, ServerRefused
from .outbox import Entry, Outbox, State


@dataclass(frozen=True)
class Delivery:
    entry: Entry
    state: State
    answer: dict[str, Any]

    @property
    def result_id(self) -> str:
        return str(self.answer["id"])

    def address(self, server: str) -> str:
        return f"{server}/results/{self.result_id}"


def submit(client: Client, outbox: Outbox) -> Iterator[Delivery]:
    """Post every pending envelope; enroll the key first if the server does not know it.

    An envelope leaves ``pending/`` only after the server's answer and the check of its receipt.
    After an interruption the next call posts it again; the server stores each envelope once and
    answers with the first receipt.

    Raises:
        ServerUnreachable: no usable answer for some envelopes; they stay in the outbox.
        LogContradiction: the server's log contradicts itself; the rest stays in the outbox.
    """
    if client.checkpoints and client.checkpoints.meet().license is None:
        raise ServerUnreachable(
            f"the licence of {client.server} has not been accepted yet: bench-agent submit asks"
        )
    deferred: list[LineAnswer] = []
    for batch in batches(outbox.pending()):
        deferred += yield from _submit_batch(client, outbox, batch)
    if deferred:
        raise ServerUnreachable(
            f"{client.server} did not take {len(deferred)} of the results: {deferred[0].reason}; "
            "try later"
        )


def _submit_batch(
    client: Client, outbox: Outbox, batch: list[Pending]
) -> Generator[Delivery, None, list[LineAnswer]]:
    """Post a batch, and rate-limited lines again after a wait. Returns the answers that leave an
    envelope pending."""
    deferred: list[LineAnswer] = []
    waited = 0.0
    while batch:
        answers = list(zip(batch, _post(client, batch), strict=True))
        sent = [
            (raw, answer.document.get("receipt"))
            for (_, raw), answer in answers
            if answer.state == "sent"
        ]
        if client.checkpoints:
            client.checkpoints.check(sent)
        for (entry, _), answer in answers:
            if answer.state != "pending":
                said = answer.document | {"server": client.server}
                yield Delivery(outbox.move(entry, answer.state, said), answer.state, said)
        limited = [
            (pending, a.wait_seconds) for pending, a in answers if a.wait_seconds is not None
        ]
        deferred += [a for _, a in answers if a.state == "pending" and a.wait_seconds is None]
        if limited:
            waited = client.wait(max(seconds for _, seconds in limited), waited)
        batch = [pending for pending, _ in limited]
    return deferred


def _post(client: Client, batch: list[Pending]) -> list[LineAnswer]:
    envelopes = [raw for _, raw in batch]
    answers = client.post_results(envelopes)
    if any(answer.document.get("code") == "unknown_key" for answer in answers):
        try:
            client.enroll()
        except ServerRefused as refusal:
            raise ServerUnreachable(str(refusal)) from refusal
        answers = client.post_results(envelopes)
    return answers
