"""Registers webhooks: add, enable and remove them, and read those there are."""

import secrets
from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, delete, select

from ..db.store import Store
from ..db.tables import Webhook, WebhookMessage
from ..errors import NotFound
from ..projection import position
from ..ranking.rows import RESULTS
from . import addresses, events


def add(
    store: Store, url: str, machine_id: str | None, hardware_slug: str | None, now: datetime
) -> str:
    """Register an address, from the next log entry on.

    Args:
        machine_id, hardware_slug: the subject of its messages; without either, every machine.

    Returns:
        The webhook's id.

    Raises:
        RefusedAddress: it is no address for a webhook.
        NotFound: no result is of this machine or hardware.
    """
    addresses.target(url)
    with store.reading() as session:
        for name, column, value in (
            ("machine", RESULTS.c.machine_id, machine_id),
            ("hardware", RESULTS.c.hardware_slug, hardware_slug),
        ):
            query = RESULTS.select().where(column == value).limit(1)
            if value is not None and session.connection().execute(query).first() is None:
                raise NotFound(f"no result is of {name} {value!r}", field=name)
        hook = Webhook(
            id=secrets.token_hex(8),
            url=url,
            machine_id=machine_id,
            hardware_slug=hardware_slug,
            created_at=now,
            position=position.read(session.connection()).next_index,
        )
        hook.ranks = events.dump_ranks(events.ranks_of(session, hook))
    with store.writing() as session:
        session.add(hook)
    return hook.id


def enable(store: Store, webhook_id: str) -> None:
    """Deliver to a disabled webhook again, what is pending first.

    Raises:
        NotFound: there is no such webhook.
    """
    with store.writing() as session:
        hook = with_id(session, webhook_id)
        hook.disabled, hook.attempts = False, 0
        hook.failing_since = hook.next_attempt_at = None
        session.add(hook)


def remove(store: Store, webhook_id: str) -> None:
    """Delete a webhook and its pending messages.

    Raises:
        NotFound: there is no such webhook.
    """
    with store.writing() as session:
        hook = with_id(session, webhook_id)
        session.exec(delete(WebhookMessage).where(col(WebhookMessage.webhook_id) == hook.id))
        session.delete(hook)


def with_id(session: Session, webhook_id: str) -> Webhook:
    """Raises NotFound if there is no such webhook."""
    hook = session.get(Webhook, webhook_id)
    if hook is None:
        raise NotFound(f"no webhook {webhook_id[:40]!r}", field="id")
    return hook


def all_of(session: Session) -> Sequence[Webhook]:
    """All webhooks, the oldest first."""
    return session.exec(select(Webhook).order_by(col(Webhook.created_at), col(Webhook.id))).all()
