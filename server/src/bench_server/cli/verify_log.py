"""``verify-log``: audit a server, a dump or the database."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated
from urllib.error import URLError
from urllib.request import urlopen

import typer

from bench_protocol.base import format as people
from bench_protocol.base.errors import ProtocolError
from bench_protocol.signing.cosignatures import WitnessKey, parse_witness_key

from ..answers import log_entries
from ..audit import dump
from ..audit import verify as audit
from ..audit.chunks import Fetch
from .operator import acting
from .options import DatabaseUrl
from .setup import stop


def verify_log(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="LOG",
            help="A server's address, or a dump that --save made; without it, the database.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save all fetched data as a dump, for others to verify."),
    ] = None,
    witness_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Verifier key of a witness whose cosignature is required. Repeatable.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Rebuild the log's tree and the leaderboard from a server's public answers, and compare.

    Exit code 1 if something does not match.
    """
    witnesses = _witnesses(witness_key or [])
    try:
        with ExitStack() as opened:
            fetch = _fetch(opened, what, database_url)
            if save is not None:
                fetch = opened.enter_context(dump.keeping(fetch, save))
            report = audit.audit(fetch, witnesses)
    except URLError as error:
        reason = getattr(error.reason, "strerror", None) or error.reason
        raise stop(f"{what} does not answer: {reason}") from None
    except (ValueError, OSError) as error:
        hint = getattr(error, "hint", "")
        raise stop(f"unreadable log: {error}{f'; {hint}' if hint else ''}") from None
    counts = (
        people.plural(report.size, "entry", "entries"),
        people.plural(report.results, "result"),
        f"{report.withheld:,} erased or hidden",
        people.plural(report.figures, "figure"),
        people.plural(report.levels, "trust level"),
    )
    print(f"{report.origin}: {', '.join(counts)}\nsigned by {report.key}")
    if report.as_of < report.size:
        print(f"the boards are as of entry {report.as_of}; later entries were checked on their own")
    if report.set_back:
        times = people.plural(len(report.set_back), "time")
        print(f"the server's clock was set back {times}, first before entry {report.set_back[0]}")
    for fault in report.faults:
        where = "the whole log" if fault.log_index is None else f"entry {fault.log_index}"
        print(f"WRONG {where}: {fault.detail}")
    if report.faults:
        raise typer.Exit(1)
    print("the tree, every checkpoint, signature, figure and trust level follow from the entries")
    if witnesses:
        print("every named witness has signed the log")


def _witnesses(texts: list[str]) -> tuple[WitnessKey, ...]:
    try:
        return tuple(parse_witness_key(text) for text in texts)
    except ProtocolError as error:
        raise stop(
            f"--witness-key: {error.detail}; give NAME+HASH+KEY, as the witness publishes it"
        ) from None


def _fetch(opened: ExitStack, what: str | None, database_url: str | None) -> Fetch:
    if what is None:
        store, authority = opened.enter_context(acting(database_url))
        session = opened.enter_context(store.reading())
        return log_entries.fetch_from(session, authority, "none")
    if what.startswith(("http://", "https://")):
        return partial(get, what.rstrip("/"))
    return opened.enter_context(dump.reading(Path(what)))


def get(address: str, path: str) -> bytes:
    with urlopen(address + path, timeout=60) as response:  # noqa: S310 - http and https only
        raw: bytes = response.read()
    return raw
