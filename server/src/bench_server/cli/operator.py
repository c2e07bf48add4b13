"""Operator commands: keys, owners, results, invitations.

Every decision is signed with the operator's key and logged.
"""

import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from sqlmodel import col, select

from bench_protocol.base import format as people
from bench_protocol.base.errors import ProtocolError, first_invalid_field
from bench_protocol.base.names import unseen
from bench_protocol.base.units import utc_text
from bench_protocol.payload import acts, statement
from bench_protocol.signing import envelope
from bench_protocol.signing.breaks import REASON

from ..db.store import Store, utc_now
from ..db.tables import Owner, SigningKey
from ..ingest import key_events, key_registry, moderation
from ..log import breaks, reader, writer
from ..log.server_keys import Authority, KeysProblem, load_authority
from .options import DatabaseUrl
from .setup import open_store, read_settings, remark, stop


def _group(words: str) -> typer.Typer:
    return typer.Typer(
        help=words, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown"
    )


keys = _group("Keys: list, approve, revoke; archive the server's own.")
owners = _group("Owners: list, assign keys, confirm, doubt.")
results = _group("Results: flag, quarantine, restore, withdraw.")
KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's id, 64 hex digits.")]
Label = Annotated[str, typer.Argument(metavar="OWNER", help="The owner's label.")]
ResultId = Annotated[str, typer.Argument(metavar="RESULT_ID", help="The result's id.")]
# Hints for invalid fields of an event or act whose error does not say what is valid.
KEY_WORDS = "KEY_ID is 64 hex digits; bench-server keys list shows the ids"
IDS = {
    "key": KEY_WORDS,
    "key_id": KEY_WORDS,
    "result": "RESULT_ID is 16 hex digits, the end of its page's address",
    "owner": "OWNER is a label of 1 to 80 characters without control characters",
    "reason": "--reason is a text of 1 to 200 characters without control characters",
}
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Shown to everyone.")]


@keys.command("list")
def list_keys(database_url: DatabaseUrl = None) -> None:
    """List every key: id, status, owner."""
    with acting(database_url) as (store, _), store.reading() as session:
        rows = session.exec(select(SigningKey).order_by(col(SigningKey.enrolled_at))).all()
        if not rows:
            remark("no keys; bench-agent enroll --server URL enrolls one")
        for row in rows:
            print(f"{row.key_id}  {row.status:8}  {row.owner}")


@keys.command("archive")
def archive_keys(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The tar file to write.")],
    database_url: DatabaseUrl = None,
) -> None:
    """Write the server's own keys to a tar file that you alone can read."""
    settings, _ = read_settings(database_url=database_url)
    found = sorted(settings.keys_folder.glob("*.pem"))
    if not found:
        raise stop(f"{settings.keys_folder} has no keys; the first bench-server serve makes them")
    partial = file.with_name(f"{file.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as raw, tarfile.open(fileobj=raw, mode="w") as tar:
            for path in found:
                tar.add(path, arcname=path.name)
        partial.replace(file)
    except OSError as error:
        raise stop(f"cannot write {file}: {error.strerror}") from None
    print(f"{file}: {people.plural(len(found), 'key')} of {settings.keys_folder}")


@keys.command()
def approve(key: KeyId, database_url: DatabaseUrl = None) -> None:
    """Approve a pending key, so that it may send results."""
    _decide(database_url, "approve", key=key)


@keys.command()
def revoke(
    key: KeyId,
    reason: Reason,
    since: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Log index from which its results do not count."),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Revoke a key. This cannot be undone."""
    with acting(database_url) as (store, authority):
        event = acts.Revocation(
            event="revoke",
            key_id=key,
            reason=reason,
            compromised_since_log_index=since,
            server_origin=authority.origin,
            at=utc_text(utc_now()),
        )
        payload = acts.payload(event)
        sealed = envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, payload, authority.operator)
        body = b'{"envelope":%s}' % sealed
        logged = key_events.accept(body, store, authority, "open", utc_now())
        print(f"logged as entry {logged.receipt.index}")


@owners.command("list")
def list_owners(database_url: DatabaseUrl = None) -> None:
    """List every owner: confirmed or not, number of keys."""
    with acting(database_url) as (store, _), store.reading() as session:
        rows = session.exec(select(Owner).order_by(col(Owner.label))).all()
        if not rows:
            remark("no owners; the first key that is enrolled has one")
        for row in rows:
            word = "confirmed" if row.confirmed else "unconfirmed"
            count = len(key_registry.keys_of(session, row.label))
            print(f"{row.label}  {word}  {people.plural(count, 'key')}")


@owners.command()
def assign(key: KeyId, label: Label, database_url: DatabaseUrl = None) -> None:
    """Assign a key to an owner; its results then count as that owner's."""
    _decide(database_url, "assign", key=key, owner=label)


@owners.command()
def confirm(label: Label, database_url: DatabaseUrl = None) -> None:
    """Vouch for an owner: its results may reproduce others."""
    _decide(database_url, "confirm", owner=label)


@owners.command()
def doubt(label: Label, database_url: DatabaseUrl = None) -> None:
    """Withdraw the confirmation of an owner."""
    _decide(database_url, "doubt", owner=label)


@results.command()
def flag(result: ResultId, reason: Reason, database_url: DatabaseUrl = None) -> None:
    """Exclude a result from every ranking; it stays listed as unranked, with the reason."""
    _decide(database_url, "flag", result=result, reason=reason)


@results.command()
def quarantine(result: ResultId, reason: Reason, database_url: DatabaseUrl = None) -> None:
    """Withhold a result until it has been reviewed."""
    _decide(database_url, "quarantine", result=result, reason=reason)


@results.command()
def restore(result: ResultId, database_url: DatabaseUrl = None) -> None:
    """Let a flagged or quarantined result count again, if its checks allow it."""
    _decide(database_url, "restore", result=result)


@results.command()
def withdraw(
    result: ResultId,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Erase a result whose sender can no longer sign. This cannot be undone."""
    _require_yes(yes, f"Erase result {result} for good?")
    _decide(database_url, "withdraw", result=result)


def create_invite(
    owner: Annotated[
        str | None, typer.Option(metavar="OWNER", help="Owner that the key will belong to.")
    ] = None,
    days: Annotated[
        float,
        typer.Option(min=0.01, max=365, metavar="DAYS", help="Days that it is valid, up to 365."),
    ] = 14,
    database_url: DatabaseUrl = None,
) -> None:
    """Print an invitation code for one key."""
    with acting(database_url) as (store, _), store.writing() as session:
        print(key_registry.invite(session, utc_now(), owner, timedelta(days=days)))


def state_break(
    reason: Reason,
    kept: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Entries that are left (default: all present)."),
    ] = None,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Sign a statement that the newest entries of a restored log are lost.

    Agents that saw such entries accept the log again, and post their lost results again. It asks
    if no entry is left: agents then accept any log.
    """
    if not re.fullmatch(REASON, reason) or unseen(reason):
        raise stop(IDS["reason"])
    with acting(database_url) as (store, authority):
        with store.reading() as session:
            kept = reader.newest_checkpoint(session).size if kept is None else kept
        if kept == 0:
            _require_yes(yes, "State that no entry is left? Every agent then accepts any log.")
        with store.writing() as session:
            breaks.state(session, authority, reason, utc_now(), kept)
    print(f"stated: the log keeps {people.plural(kept, 'entry', 'entries')}; see the page /log")


def _require_yes(yes: bool, question: str) -> None:
    if not yes and not typer.get_text_stream("stdin").isatty():
        raise stop(f"{question} Pass --yes to agree, or answer at a terminal.")
    if not yes:
        typer.confirm(question, abort=True, err=True)


def _decide(database_url: str | None, kind: acts.OperatorAct, **about: Any) -> None:
    with acting(database_url) as (store, authority):
        if kind in ("confirm", "doubt"):
            _require_owner(store, about["owner"])
        done = moderation.decide(store, authority, utc_now(), kind, **about)
        if done.receipt is not None:
            print(f"logged as entry {done.receipt.index}")


def _require_owner(store: Store, label: str) -> None:
    """A wrong label in the log would be permanent."""
    with store.reading() as session:
        if session.get(Owner, label) is None:
            raise stop(f"no key belongs to {label!r}; bench-server owners list names the owners")


@contextmanager
def acting(database_url: str | None) -> Iterator[tuple[Store, Authority]]:
    """Stop with one line on an error."""
    with open_store(database_url) as (store, settings):
        try:
            authority = load_authority(settings.origin, settings.keys_folder)
            with store.writing() as session:
                writer.begin(session, authority)  # refuses keys that are not this log's
            yield store, authority
        except ValidationError as error:
            invalid = first_invalid_field(error)
            raise stop(IDS.get(invalid.field, str(invalid))) from None
        except (ProtocolError, KeysProblem) as error:
            raise stop(str(error)) from None
