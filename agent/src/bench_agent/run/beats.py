"""Beats of one repeat: which hash is posted when. A network fault never delays the worker."""

import queue
import threading
from collections.abc import Callable
from typing import NamedTuple

from bench_protocol.payload import beats
from bench_protocol.payload.beats import LATEST_NS, Ending
from bench_protocol.payload.evidence import MOST_BEATS, Beat

from ..base.messages import BlockDone, PhaseBegan, TimingEnded, WorkerEvent
from ..remote.beats import BeatPost, BeatServer

# A shorter timed part has no beat between its first and its last.
QUIET_NS = 60_000_000_000
EVERY_NS = 10_000_000_000


class _Step(NamedTuple):
    """A beat to post: the blocks since the one before, and the losses where timing has ended."""

    moment: str
    durations_ns: tuple[int, ...]
    ending: Ending | None


class Beats:
    """Posts a hash when timing begins and when it ends; in a timed part above 60 s also one each
    10 s, when a block has ended.

    The worker never waits: a thread of this process posts while the first block runs. An answer
    later than half a second is not used, and the next hash goes on without its beacon.

    Args:
        server: where to post; None posts nothing.
        first_head: the head when timing begins.
        clock_ns: monotonic nanoseconds since the run's start.
    """

    def __init__(
        self,
        server: BeatServer | None,
        first_head: str,
        clock_ns: Callable[[], int],
        open_post: Callable[[BeatServer], BeatPost] = BeatPost,
    ) -> None:
        self._server = server
        self._first_head = first_head
        self._clock_ns = clock_ns
        self._open_post = open_post
        self._steps: queue.SimpleQueue[_Step | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._beats: list[Beat] = []
        self._durations_ns: list[int] = []  # since the last beat
        self._due_ns = 0
        self._during = 0

    def heard(self, message: WorkerEvent) -> None:
        """Handle a message of the worker; takes microseconds."""
        if self._server is None:
            return
        if message == PhaseBegan(phase="warm_up") and self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(self._server,), name="beats", daemon=True
            )
            self._thread.start()
        elif message == PhaseBegan(phase="timing"):
            self._due_ns = self._clock_ns() + QUIET_NS
            self._post("begin")
        elif isinstance(message, BlockDone):
            self._durations_ns.append(message.duration_ns)
            if self._during < MOST_BEATS - 2 and self._clock_ns() >= self._due_ns:
                self._due_ns = self._clock_ns() + EVERY_NS
                self._during += 1
                self._post("during")
        elif isinstance(message, TimingEnded):
            self._post("end", Ending(message.last_loss, message.losses))

    def collect(self) -> tuple[Beat, ...]:
        """All beats so far. Waits for an answer that is under way, at most half a second."""
        if self._thread is None:
            return ()
        self._steps.put(None)
        self._thread.join(LATEST_NS / 1e9)
        return tuple(self._beats)

    def _post(self, moment: str, ending: Ending | None = None) -> None:
        self._steps.put(_Step(moment, tuple(self._durations_ns), ending))
        self._durations_ns.clear()

    def _run(self, server: BeatServer) -> None:
        post = self._open_post(server)
        try:
            post.connect()
            while (step := self._steps.get()) is not None:
                self._one(post, step)
        finally:
            post.close()

    def _one(self, post: BeatPost, step: _Step) -> None:
        before = self._beats[-1] if self._beats else None
        head, blocks = self._first_head, len(step.durations_ns)
        if before is not None:
            head = beats.next_head(before, step.durations_ns, step.ending)
            blocks += before.blocks
        body = post.body(head)
        posted = Beat.model_validate(
            {
                "head": head,
                "moment": step.moment,
                "blocks": blocks,
                "sent_ns": self._clock_ns(),
                "problem": "late",
            }
        )
        # Until there is an answer, the result says that there is none.
        self._beats.append(posted)
        answer = post.send(body)
        self._beats[-1] = post.read(answer, posted, self._clock_ns())
