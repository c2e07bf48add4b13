"""Commands of webhooks, and the thread that delivers them beside a projector."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import Annotated

import typer
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import select

from bench_protocol.base.errors import ProtocolError

from ..db.store import Store
from ..db.tables import Webhook
from ..log import writer
from ..log.server_keys import Authority, KeysProblem, load_authority
from ..settings import Settings
from .options import DatabaseUrl
from .setup import open_store, remark, stop

# At its end the server does not wait for a receiver far away.
JOIN_SECONDS = 1.0
logger = logging.getLogger(__name__)
webhooks = typer.Typer(
    help="Webhooks: add, list, show a secret, enable, remove.", no_args_is_help=True
)
WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK_ID", help="The webhook's id.")]


@webhooks.command()
def add(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Where messages are posted: https://...")
    ],
    machine: Annotated[
        str | None,
        typer.Option(metavar="MACHINE_ID", help="Only messages about this machine."),
    ] = None,
    hardware: Annotated[
        str | None,
        typer.Option(metavar="SLUG", help="Only messages about this hardware, by its slug."),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Register an address for messages, and print its secret."""
    from ..app import utc_now
    from ..webhooks import addresses, registry, signature

    if machine and hardware:
        raise stop("--machine and --hardware exclude each other; add a webhook for each")
    with _with_keys(database_url) as (store, authority, settings):
        try:
            to = addresses.target(url)
            addresses.endpoints(to, settings.private_webhook_hosts)
            webhook_id = registry.add(store, url, machine, hardware, utc_now())
        except addresses.RefusedAddress as error:
            raise stop(
                f"{url}: {error}; wanted: https://HOST/PATH with a public address, or a host in "
                "BENCH_SERVER_WEBHOOK_HOSTS"
            ) from None
        except OSError as error:
            raise stop(f"{to.host} cannot be resolved: {error}") from None
        print(f"webhook {webhook_id}\nsecret {signature.secret(authority.operator, webhook_id)}")


@webhooks.command("list")
def list_webhooks(database_url: DatabaseUrl = None) -> None:
    """List every webhook: id, address, subject, state."""
    from ..webhooks import registry

    with open_store(database_url) as (store, _), store.reading() as session:
        hooks = registry.all_of(session)
        if not hooks:
            remark("no webhooks; bench-server webhooks add URL registers one")
        for hook in hooks:
            about = hook.machine_id or hook.hardware_slug or "everything"
            state = f"at entry {hook.position:,}"
            if hook.failing_since is not None:
                word = "disabled, failed" if hook.disabled else "fails"
                since = f"{hook.failing_since:%Y-%m-%d %H:%M} UTC"
                state = f"{word} since {since} ({hook.attempts} attempts): {hook.last_error}"
            print(f"{hook.id}  {hook.url}  {about}  {state}")


@webhooks.command()
def secret(webhook: WebhookId, database_url: DatabaseUrl = None) -> None:
    """Print a webhook's secret again."""
    from ..webhooks import registry, signature

    with _with_keys(database_url) as (store, authority, _), store.reading() as session:
        print(signature.secret(authority.operator, registry.with_id(session, webhook).id))


@webhooks.command()
def enable(webhook: WebhookId, database_url: DatabaseUrl = None) -> None:
    """Deliver to a disabled webhook again, pending messages first."""
    from ..webhooks import registry

    with _with_keys(database_url) as (store, _, _):
        registry.enable(store, webhook)


@webhooks.command()
def remove(webhook: WebhookId, database_url: DatabaseUrl = None) -> None:
    """Remove a webhook with its pending messages. Its secret is never used again."""
    from ..webhooks import registry

    with _with_keys(database_url) as (store, _, _):
        registry.remove(store, webhook)


@contextmanager
def _with_keys(database_url: str | None) -> Iterator[tuple[Store, Authority, Settings]]:
    """The database with the server's own keys; stop with one line on an error."""
    with open_store(database_url) as (store, settings):
        try:
            yield store, server_keys(store, settings), settings
        except (ProtocolError, KeysProblem) as error:
            raise stop(str(error)) from None


def server_keys(store: Store, settings: Settings) -> Authority:
    """The server's own keys, after checking that they have signed this database's log.

    Raises:
        KeysProblem: they have not, or cannot be used.
    """
    authority = load_authority(settings.origin, settings.keys_folder)
    with store.writing() as session:
        writer.begin(session, authority)
    return authority


@contextmanager
def delivering(store: Store, settings: Settings) -> Iterator[None]:
    """A thread that delivers webhooks once there are any, until the context ends."""
    ended = Event()
    follow = Thread(target=_follow, args=(store, settings, ended), name="webhooks", daemon=True)
    follow.start()
    try:
        yield
    finally:
        ended.set()
        follow.join(JOIN_SECONDS)


def _follow(store: Store, settings: Settings, ended: Event) -> None:
    # Imported here, in the thread: a start does not wait for it.
    from ..webhooks.delivery import LOOK_SECONDS, Deliverer
    from ..webhooks.sending import post

    while not ended.wait(LOOK_SECONDS):
        try:
            with store.reading() as session:
                if session.exec(select(Webhook).limit(1)).first() is None:
                    continue
            authority = server_keys(store, settings)
        except KeysProblem as error:
            logger.error("no webhook is delivered: %s", error)
            return
        except SQLAlchemyError as error:
            logger.warning("webhooks wait for the database: %s", type(error).__name__)
            continue
        send = partial(post, private_hosts=settings.private_webhook_hosts)
        Deliverer(store, authority.origin, authority.operator, send).run(ended)
