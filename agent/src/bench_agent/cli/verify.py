"""``verify``: is a result what its key signed, and does a log hold it?"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Exit, Json, open_home, open_reader, print_json, stop
from .submit import talking

if TYPE_CHECKING:
    from ..base.home import Home
    from ..remote.outbox import Entry
    from ..remote.verify import Verified

# What was verified, the bundle it was in (None where no server was asked), the trusted log key
# (None: the bundle's own).
Found = tuple["Verified", dict[str, Any] | None, str | None]


def verify(
    what: Annotated[
        str,
        typer.Argument(help="A result's address, a bundle in a file, or a file of the outbox."),
    ],
    save: Annotated[
        Path | None, typer.Option("--save", help="Keep the bundle, to verify it without network.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a result's signature, its key's history, and that the log holds it."""
    from bench_protocol.errors import ProtocolError

    from ..base.home import write_durably

    try:
        found, bundle, trusted = _found(what, open_home())
    except ProtocolError as error:
        stop(Exit.SOME_FAILED, f"DOES NOT HOLD: {error.detail}")
    if save and bundle is None:
        stop(Exit.WRONG_USAGE, "there is no bundle to save: no server was asked")
    if save:
        write_durably(save, json.dumps(bundle, indent=1).encode())
    if as_json:
        print_json({"holds": found.sentences, "log_index": found.log_index, "key_id": found.key_id})
        return
    for sentence in found.sentences:
        typer.echo(f"holds: {sentence}")
    if bundle is not None and trusted is None:
        typer.echo(f"trusting the log key in the bundle: {bundle['log']['key']}")
    logged = ", unaltered and logged" if found.log_index is not None else " and unaltered"
    typer.echo(f"It is signed{logged}. None of that shows that it is true.")


def _found(what: str, home: "Home") -> Found:
    from ..remote import verify as verifying
    from ..remote.outbox import Entry

    place = verifying.parse_address(what)
    if place is not None:
        client = open_reader(place[0], home)
        with talking(client):
            bundle = verifying.fetch_bundle(place[1], client.read)
            trusted = client.witness.meet().key if client.witness else None
        return verifying.verify(bundle, trusted), bundle, trusted
    given = verifying.read_file(Path(what))
    if isinstance(given, Entry):
        return _kept(given, home)
    return verifying.verify(given), given, None


def _kept(entry: "Entry", home: "Home") -> Found:
    """An envelope of the outbox: with what its server answers, or without a server by the
    machine's own key and what it remembers of the log."""
    from ..base.errors import LogContradiction, ServerUnreachable
    from ..base.keys import own_key
    from ..remote import verify as verifying
    from ..remote.client import ServerRefused
    from ..remote.log_witness import server_of

    key, answer = own_key(home), entry.answer or {}
    own = key.public_key() if key else None
    if "receipt" not in answer:
        typer.echo("not sent: no log holds it yet", err=True)
        return verifying.verify_own(entry.raw, own), None, None
    receipt = verifying.parse_receipt(answer["receipt"])
    server, known = server_of(home, receipt.checkpoint)
    client = open_reader(server, home)
    try:
        known = client.witness.meet() if client.witness else known
        sealed = json.loads(entry.raw)
        bundle = verifying.complete_bundle(sealed, answer["receipt"], client.read)
    except LogContradiction as error:
        stop(Exit.SERVER_UNREACHABLE, str(error))
    except ServerRefused as error:
        stop(Exit.SOME_FAILED, str(error))
    except ServerUnreachable as error:
        typer.echo(f"the key's history was not looked at: {error}", err=True)
        return verifying.verify_own(entry.raw, own, receipt, known.key), None, known.key
    finally:
        client.close()
    return verifying.verify(bundle, known.key), bundle, known.key
