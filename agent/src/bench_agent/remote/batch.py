"""Batches: split the outbox into requests of many envelopes, and parse the server's answers.

A batch is NDJSON with one envelope a line. The server answers with one line for each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench_protocol.base import strict_json

from .connection import ASKS_TO_WAIT, TRANSIENT
from .outbox import Entry, problem_text

NDJSON = "application/x-ndjson"
# Limits of a batch: well below the server's 8 MiB, and few enough for a timely answer.
MOST_ENVELOPES = 48
MOST_BYTES = 4 * 1024 * 1024

# Refusals of the key, not of the result: the operator or an invitation resolves them.
KEY_REFUSALS = {"key_not_active", "not_invited"}


# An envelope of the outbox and its bytes.
Pending = tuple[Entry, bytes]


@dataclass(frozen=True)
class LineAnswer:
    """The server's answer for one envelope.

    ``document``: the result with its receipt, or the problem. ``wait_seconds``: time to wait
    before the envelope is posted again; None if the server does not ask for a wait.
    """

    status: int
    document: dict[str, Any]
    wait_seconds: float | None = None

    @property
    def state(self) -> Literal["sent", "refused", "pending"]:
        if 200 <= self.status < 300:
            return "sent"
        final = 400 <= self.status < 500 and self.status not in TRANSIENT
        judged = final and is_problem(self.document) and self.document["code"] not in KEY_REFUSALS
        return "refused" if judged else "pending"

    @property
    def reason(self) -> str:
        """Why the server does not accept the envelope, and the remedy."""
        return problem_text(self.document, f"answered {self.status}")


NO_ANSWER = LineAnswer(0, {"detail": "the answer lacks a line"})


def batches(entries: Iterable[Entry]) -> Iterator[list[Pending]]:
    """Split envelopes, in their order, into batches of at most MOST_ENVELOPES and MOST_BYTES."""
    batch: list[Pending] = []
    size = 0
    for entry in entries:
        try:
            raw = entry.path.read_bytes()
        except FileNotFoundError:
            continue  # another process has sent it
        if batch and (len(batch) == MOST_ENVELOPES or size + len(raw) > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((entry, raw))
        size += len(raw) + 1
    if batch:
        yield batch


def body(envelopes: Sequence[bytes]) -> bytes:
    """The body of a request. A line break between JSON tokens becomes a space."""
    return b"\n".join(raw.replace(b"\n", b" ") for raw in envelopes)


def read_answers(raw: bytes, count: int, wait_seconds: float) -> list[LineAnswer]:
    """The answer for each of ``count`` lines, in their order. ``wait_seconds``: time to wait before
    a rate-limited line is posted again.

    Raises:
        ProtocolError, LookupError, TypeError: not an answer to a batch.
    """
    answers: dict[int, LineAnswer] = {}
    for text in raw.split(b"\n"):
        if not text.strip():
            continue
        line = strict_json.loads(text)
        status, document = line["status"], line["result" if "result" in line else "problem"]
        named = "problem" in line or isinstance(document["id"], str)
        if not (named and isinstance(status, int) and isinstance(document, dict)):
            raise TypeError("a line has a status and a document, a result has an id")
        waits = wait_seconds if status in ASKS_TO_WAIT else None
        answers[line["line"]] = LineAnswer(status, document, waits)
    return [answers.get(number, NO_ANSWER) for number in range(1, count + 1)]


def is_problem(document: Mapping[str, Any]) -> bool:
    """Whether a document is a server's refusal: its code and detail are strings."""
    return all(isinstance(document.get(name), str) for name in ("code", "detail"))
