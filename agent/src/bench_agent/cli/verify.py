"""``verify``: check a result's signature, its key's history and its entry in the log."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from bench_protocol.errors import ProtocolError

from ..base.errors import LogContradiction, ServerUnreachable
from ..base.home import Home, write_durably
from ..base.keys import own_key
from ..remote.client import ServerRefused
from ..remote.log_witness import server_of
from ..remote.outbox import Entry
from ..remote.verify import (
    Verified,
    complete_bundle,
    fetch_bundle,
    parse_address,
    parse_receipt,
    read_file,
    verify_own,
)
from ..remote.verify import verify as verify_bundle
from .exits import Exit, stop
from .options import Json
from .setup import exchange, open_home, open_reader, print_json

# The verified result, its bundle (None if no server was asked), the trusted log key (None: the
# bundle's own).
Checked = tuple[Verified, dict[str, Any] | None, str | None]


def verify(
    what: Annotated[
        str,
        typer.Argument(help="A result's address, a bundle in a file, or a file of the outbox."),
    ],
    save: Annotated[
        Path | None, typer.Option("--save", help="Save the bundle, to verify it offline.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a result's signature, its key's history, and that the log holds it."""
    try:
        verified, bundle, trusted = _check(what, open_home())
    except ProtocolError as error:
        stop(Exit.SOME_FAILED, f"DOES NOT HOLD: {error.detail}")
    if save and bundle is None:
        stop(Exit.WRONG_USAGE, "there is no bundle to save: no server was asked")
    if save:
        write_durably(save, json.dumps(bundle, indent=1).encode())
    if as_json:
        print_json(
            {
                "holds": verified.sentences,
                "log_index": verified.log_index,
                "key_id": verified.key_id,
            }
        )
        return
    for sentence in verified.sentences:
        typer.echo(f"holds: {sentence}")
    if bundle is not None and trusted is None:
        typer.echo(f"trusting the log key in the bundle: {bundle['log']['key']}")
    logged = ", unaltered and logged" if verified.log_index is not None else " and unaltered"
    typer.echo(f"It is signed{logged}. None of that shows that it is true.")


def _check(what: str, home: Home) -> Checked:
    address = parse_address(what)
    if address is not None:
        server, result_id = address
        client = open_reader(server, home)
        with exchange(client):
            bundle = fetch_bundle(result_id, client.read)
            trusted = client.witness.meet().key if client.witness else None
        return verify_bundle(bundle, trusted), bundle, trusted
    content = read_file(Path(what))
    if isinstance(content, Entry):
        return _outbox_entry(content, home)
    return verify_bundle(content), content, None


def _outbox_entry(entry: Entry, home: Home) -> Checked:
    """Check an envelope of the outbox against its server. If the server does not answer, check it
    against this machine's key and the log key that it remembers."""
    key, answer = own_key(home), entry.answer or {}
    public_key = key.public_key() if key else None
    if "receipt" not in answer:
        typer.echo("not sent: no log holds it yet", err=True)
        return verify_own(entry.raw, public_key), None, None
    receipt = parse_receipt(answer["receipt"])
    server, log = server_of(home, receipt.checkpoint)
    client = open_reader(server, home)
    try:
        log = client.witness.meet() if client.witness else log
        sealed = json.loads(entry.raw)
        bundle = complete_bundle(sealed, answer["receipt"], client.read)
    except LogContradiction as error:
        stop(Exit.SERVER_UNREACHABLE, str(error))
    except ServerRefused as error:
        stop(Exit.SOME_FAILED, str(error))
    except ServerUnreachable as error:
        typer.echo(f"the key's history was not checked: {error}", err=True)
        return verify_own(entry.raw, public_key, receipt, log.key), None, log.key
    finally:
        client.close()
    return verify_bundle(bundle, log.key), bundle, log.key
