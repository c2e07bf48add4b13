"""``verify``: check a result's signature, its key's history and its entry in the log."""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench_protocol.base import strict_json
from bench_protocol.base.errors import ProtocolError
from bench_protocol.payload import statement
from bench_protocol.trust import shows

from ..base.errors import HomeProblem, LogContradiction, ServerUnreachable
from ..base.home import Home, write_durably
from ..base.keys import own_key
from ..base.terminal import write, write_json
from ..output.console import FAILURE, GOOD, SOFT, WARNING, console, say, show_table
from ..remote.client import ServerRefused
from ..remote.connection import reading
from ..remote.known_servers import server_of
from ..remote.log_receipts import parse_receipt
from ..remote.outbox import Entry
from ..remote.verify import (
    Verified,
    complete_bundle,
    facts,
    fetch_bundle,
    fetch_judged,
    parse_address,
    read_file,
    verify_own,
)
from ..remote.verify import verify as verify_bundle
from .exits import Exit, stop
from .options import Json, option
from .setup import exchange, open_home, open_reader

if TYPE_CHECKING:
    from ..remote.recompute import Compared

# The verified result, its bundle (None if no server was asked), the trusted log key (None: the
# bundle's own).
Checked = tuple[Verified, dict[str, Any] | None, str | None]

UNSEEN = "Speed and hardware: sender's word."


def verify(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RESULT",
            help="A result's address, a bundle in a file, or a file of the outbox.",
        ),
    ],
    save: Annotated[
        Path | None, option("--save", "FILE", "Save the bundle, to verify it offline.")
    ] = None,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Also compute its readings again.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Also list all that was checked, and each claim.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a result's signature, its key's history, and that the log holds it."""
    try:
        verified, bundle, trusted = _check(what, open_home())
        judged = facts(verified, bundle)
        claims = shows.of(judged)
    except ProtocolError as error:
        stop(Exit.SOME_FAILED, f"NOT VALID: {error.detail}")
    if save and bundle is None:
        stop(Exit.WRONG_USAGE, "there is no bundle to save: no server was asked")
    if save:
        try:
            write_durably(save, json.dumps(bundle, indent=1).encode())
        except HomeProblem:  # its words are about the agent's folder
            stop(Exit.WRONG_USAGE, f"--save: cannot write {save}; name another file")
        write(f"saved {save}", err=True)
    compared = _recomputed(verified) if recompute else []
    if as_json:
        document: dict[str, Any] = {
            "holds": verified.sentences,
            "log_index": verified.log_index,
            "key_id": verified.key_id,
            "level_words": shows.level_words(judged),
            "shows": [vars(one) for one in claims],
        }
        if recompute:
            document["recomputed"] = [vars(item) for item in compared]
        write_json(document)
        _require_right(compared)
        return
    shown = console()
    own_key = bundle["log"]["key"] if bundle is not None and trusted is None else None
    wrong = [one for one in claims if one.status == "does_not_hold"]
    genuine = "Genuine and logged" if verified.log_index is not None else "Genuine, in no log yet"
    condition = ", if the log's key below is the server's" if own_key else ""
    style = FAILURE if _is_wrong(compared) else WARNING if wrong or own_key else GOOD
    say(shown, f"{genuine}{condition}. {_meaning(compared, recompute)}", style)
    for one in wrong:
        say(shown, f"Does not hold: {one.title}: {one.sentence}", WARNING)
    if (level := shows.level_words(judged)) is not None:
        say(shown, f"The server gives it trust {level}.")
    if own_key:
        say(shown, "The log's key came with the bundle. The server's page /log must show the same:")
        say(shown, f"  {own_key}")
    _say(compared)
    if every:
        for sentence in verified.sentences:
            say(shown, f"OK  {sentence}", GOOD)
        rows = [(shows.STATUS_WORDS[c.status], f"{c.title}: {c.sentence}") for c in claims]
        show_table(shown, ("status", "what the result shows"), rows)
    else:
        say(shown, f"--all lists what was checked, and each of {len(claims)} claims.", SOFT)
    _require_right(compared)


def _meaning(compared: "list[Compared]", recompute: bool) -> str:
    if _is_wrong(compared):
        return "The recomputation gives other figures."
    if recompute and any(item.trains and item.kind == "conformant" for item in compared):
        return f"This key ran this job. {UNSEEN}"
    return f"Whether this key ran this job is not shown. {UNSEEN}" if recompute else UNSEEN


def _recomputed(verified: Verified) -> "list[Compared]":
    from ..remote.recompute import of_recomputations, of_result

    result = statement.parse_result(verified.payload)
    return [*of_result(result), *of_recomputations(verified.stated)]


def _say(compared: "list[Compared]") -> None:
    for item in compared:
        write(f"recomputed: {item.what}: {item.kind.replace('_', ' ')}: {item.sentence}")


def _require_right(compared: "list[Compared]") -> None:
    if _is_wrong(compared):
        stop(Exit.SOME_FAILED, "NOT VALID: the recomputation gives other figures")


def _is_wrong(compared: "list[Compared]") -> bool:
    return any(item.kind == "wrong_result" for item in compared)


def _check(what: str, home: Home) -> Checked:
    address = parse_address(what)
    if address is not None:
        server, result_id = address
        with exchange(open_reader(server, home)) as client:
            with reading(server):
                bundle = fetch_bundle(result_id, client.read)
            trusted = client.checkpoints.meet().key if client.checkpoints else None
            verified = verify_bundle(bundle, trusted)
        return verified, bundle, trusted
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
        write("It was not sent, so it is in no log.", err=True)
        return verify_own(entry.raw, public_key), None, None
    receipt = parse_receipt(answer["receipt"])
    server, log = server_of(home, receipt.checkpoint)
    client = open_reader(server, home)
    try:
        log = client.checkpoints.meet() if client.checkpoints else log
        if client.checkpoints and not client.checkpoints.has(receipt.checkpoint):
            stop(Exit.SOME_FAILED, "This result's entry is among the lost ones, so no log has it.")
        sealed = strict_json.loads(entry.raw)
        with reading(server):
            bundle = complete_bundle(sealed, answer["receipt"], client.read)
            with suppress(ServerRefused):  # a withdrawn result has no verdicts
                bundle |= fetch_judged(str(answer["id"]), client.read)
    except LogContradiction as error:
        stop(Exit.SERVER_UNREACHABLE, str(error))
    except ServerRefused as error:
        stop(Exit.SOME_FAILED, str(error))
    except ServerUnreachable as error:
        write(f"The key's history was not checked: {error}", err=True)
        return verify_own(entry.raw, public_key, receipt, log.key), None, log.key
    finally:
        client.close()
    return verify_bundle(bundle, log.key), bundle, log.key
