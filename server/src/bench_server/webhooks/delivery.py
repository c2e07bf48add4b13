"""Delivers webhooks: turns projected log entries into messages, and posts them until accepted.

For each webhook there are two steps, in turn. While no message is pending, the next entries are
turned into messages: these and the position after the entries are one transaction. Then the oldest
message is posted, and deleted once it is accepted. So a kill at any point loses nothing, and
repeats one message at most, with the same id. A message that fails holds back those after it.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import ColumnElement, func, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, delete, select

from ..db.store import UNAVAILABLE, Lock, Store
from ..db.tables import Webhook, WebhookMessage
from ..projection import position
from . import events, signature
from .addresses import target
from .sending import NotDelivered

LOCK = "webhooks"
LOOK_SECONDS = 2.0
# After the first failed attempt; each further wait is twice as long, up to the longest.
FIRST_RETRY = timedelta(seconds=5)
LONGEST_RETRY = timedelta(hours=6)
DISABLED_AFTER = timedelta(days=5)
# Messages of a webhook in one turn, so that the others have theirs.
TURN = 32
logger = logging.getLogger(__name__)


class Send(Protocol):
    """Posts a message; see :func:`.sending.post`."""

    def __call__(self, url: str, body: bytes, headers: dict[str, str]) -> None:
        """Raises NotDelivered."""


def utc_now() -> datetime:
    """The clock of attempts."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Deliverer:
    """Delivers the webhooks of one database. ``origin``: the server's name; ``operator``: the key
    that secrets follow from."""

    store: Store
    origin: str
    operator: Ed25519PrivateKey
    send: Send
    clock: Callable[[], datetime] = utc_now

    def run(self, stop: Event) -> None:
        """Deliver until ``stop`` is set. Only one process of a database does; others wait for their
        turn."""
        while not stop.is_set():
            try:
                with self.store.exclusive(LOCK) as lock:

                    def going(lock: Lock = lock) -> bool:
                        return not stop.is_set() and lock.held()

                    while going():
                        stop.wait(0 if self.step(going) else LOOK_SECONDS)
            except UNAVAILABLE as error:
                logger.warning("webhooks wait for the database: %s", type(error).__name__)
            except Exception:
                logger.exception("webhooks are delivered again in %g s", LOOK_SECONDS)
            stop.wait(LOOK_SECONDS)

    def step(self, going: Callable[[], bool] = lambda: True) -> bool:
        """One turn of each webhook.

        Args:
            going: whether to go on, asked before each post. Another process may post what is left
                once this one has lost the lock.

        Returns:
            Whether anything was collected or delivered.
        """
        with self.store.reading() as session:
            lag = position.lag(session)
        turns = [self._turn(hook, lag, going) for hook in self._enabled()]
        return any(turns)

    def _enabled(self) -> Sequence[Webhook]:
        with self.store.reading() as session:
            enabled = select(Webhook).where(col(Webhook.disabled).is_(False))
            return session.exec(enabled.order_by(col(Webhook.id))).all()

    def _turn(self, hook: Webhook, lag: position.Lag, going: Callable[[], bool]) -> bool:
        if hook.next_attempt_at is not None and self.clock() < hook.next_attempt_at:
            return False
        pending = self._pending(hook)
        if not pending:
            return hook.position < lag.position and self._collect(hook, lag)
        return all(going() and self._deliver(hook, message) for message in pending)

    def _pending(self, hook: Webhook) -> Sequence[WebhookMessage]:
        with self.store.reading() as session:
            return session.exec(
                select(WebhookMessage)
                .where(WebhookMessage.webhook_id == hook.id)
                .order_by(col(WebhookMessage.number))
                .limit(TURN)
            ).all()

    def _collect(self, hook: Webhook, lag: position.Lag) -> bool:
        with self.store.reading() as session:
            collected = events.collect(session, hook, lag, self.origin)
        values = {"position": collected.position, "ranks": events.dump_ranks(collected.ranks)}
        rows = [
            WebhookMessage(webhook_id=hook.id, number=number, **message._asdict())
            for number, message in enumerate(collected.messages)
        ]
        try:
            with self.store.writing_in_turn() as session:
                # Another process may have collected meanwhile, if this one has lost the lock.
                if not _change(session, hook, col(Webhook.position) == hook.position, **values):
                    return False
                session.add_all(rows)
        except IntegrityError:
            return False  # a result was withdrawn meanwhile: the next turn collects without it
        return True

    def _deliver(self, hook: Webhook, message: WebhookMessage) -> bool:
        """Post a message once, and store what became of it. Returns whether it was accepted."""
        body = message.body.encode()
        secret = signature.secret(self.operator, hook.id)
        failure = None
        try:
            headers = signature.headers(secret, message.id, self.clock(), body)
            self.send(hook.url, body, headers)
        except NotDelivered as error:
            failure = error
        with self.store.writing_in_turn() as session:
            if failure is not None:
                self._failed(session, hook, failure)
                return False
            session.exec(
                delete(WebhookMessage).where(
                    col(WebhookMessage.webhook_id) == hook.id,
                    col(WebhookMessage.number) == message.number,
                )
            )
            intact = dict.fromkeys(("next_attempt_at", "failing_since", "last_error"))
            return _change(session, hook, attempts=0, **intact)

    def _failed(self, session: Session, hook: Webhook, failure: NotDelivered) -> None:
        now = self.clock()
        since = hook.failing_since or now
        first = hook.failing_since is None
        disabled = failure.gone or now - since >= DISABLED_AFTER
        wait = min(FIRST_RETRY * 2 ** min(hook.attempts, 16), LONGEST_RETRY)
        _change(
            session,
            hook,
            attempts=hook.attempts + 1,
            next_attempt_at=now + wait,
            failing_since=since,
            last_error=str(failure),
            disabled=disabled,
        )
        if disabled or first:
            what = "is disabled" if disabled else "fails and is tried again"
            # Not its address: the path may be secret.
            host = target(hook.url).host
            logger.warning("webhook %s to %s %s: %s", hook.id, host, what, failure)


def failing(session: Session) -> int:
    """The number of webhooks whose last attempt failed, disabled ones included."""
    count = select(func.count()).select_from(Webhook)
    return session.exec(count.where(col(Webhook.failing_since).is_not(None))).one()


def _change(
    session: Session, hook: Webhook, *only_if: ColumnElement[bool], **values: object
) -> bool:
    """Change a webhook, here and in the database. Returns whether it is there and the conditions
    hold: it may have been removed or changed meanwhile."""
    for name, value in values.items():
        setattr(hook, name, value)
    done = session.connection().execute(
        update(Webhook).where(col(Webhook.id) == hook.id, *only_if).values(values)
    )
    return done.rowcount == 1
