"""``verify-log``: audit a server, a dump or the database."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
from ..audit import database, dump
from ..audit import verify as audit
from ..audit.chunk import Fault
from ..audit.chunks import Fetch
from ..db.store import Store
from ..log import writer
from ..log.server_keys import load_authority
from ..projection import projector
from ..settings import Settings
from .options import DatabaseUrl
from .setup import open_store, stop


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

    Without LOG also check the database's structure and every row that follows from the log. Exit
    code 1 if something does not match.
    """
    witnesses = _witnesses(witness_key or [])
    report: audit.Report | None
    faults: list[Fault]
    try:
        if what is None:
            with open_store(database_url) as (store, settings), _quiet():
                report, faults = _database(store, settings, save, witnesses)
        else:
            with _opened(what) as fetch, _kept(fetch, save) as kept:
                report = audit.audit(kept, witnesses)
                faults = [*report.faults]
    except URLError as error:
        reason = getattr(error.reason, "strerror", None) or error.reason
        raise stop(f"{what} does not answer: {reason}") from None
    except (ValueError, OSError) as error:
        hint = getattr(error, "hint", "")
        raise stop(f"unreadable log: {error}{f'; {hint}' if hint else ''}") from None
    if report is not None:
        _print_counts(report)
    for fault in faults:
        where = "the whole log" if fault.log_index is None else f"entry {fault.log_index}"
        print(f"WRONG {where}: {fault.detail}")
    if faults:
        raise typer.Exit(1)
    print("the tree, every checkpoint, signature, figure and trust level follow from the entries")
    if what is None:
        print("the database is sound, and every row that is shown follows from the log")
    if witnesses:
        print("every named witness has signed the log")


def _print_counts(report: audit.Report) -> None:
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
    for loss in report.losses:
        since = f"{loss.at:%Y-%m-%d %H:%M:%S}"
        print(f"lost: every entry from {loss.kept_size} on, stated {since} UTC: {loss.reason}")
    if report.set_back:
        times = people.plural(len(report.set_back), "time")
        print(f"the server's clock was set back {times}, first before entry {report.set_back[0]}")


def _database(
    store: Store, settings: Settings, save: Path | None, witnesses: Sequence[WitnessKey]
) -> tuple[audit.Report | None, list[Fault]]:
    """Audit the answers of a database, then the database itself. No report if the answers cannot
    be read."""
    report = None
    faults: list[Fault] = []
    try:
        authority = load_authority(settings.origin, settings.keys_folder)
        with store.writing() as session:
            writer.begin(session, authority)  # refuses keys that are not this log's
        with store.reading() as session:
            fetch = log_entries.fetch_from(session, authority, "none")
            with _kept(fetch, save) as kept:
                report = audit.audit(kept, witnesses)
        faults += report.faults
    except OSError:
        raise
    except Exception as error:
        faults.append(database.unreadable("the log", error))
    return report, [*faults, *database.faults(store)]


@contextmanager
def _quiet() -> Iterator[None]:
    """The findings say why an entry cannot be projected; the projector would log a traceback."""
    logger = logging.getLogger(projector.__name__)
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False


def _witnesses(texts: list[str]) -> tuple[WitnessKey, ...]:
    try:
        return tuple(parse_witness_key(text) for text in texts)
    except ProtocolError as error:
        raise stop(
            f"--witness-key: {error.detail}; give NAME+HASH+KEY, as the witness publishes it"
        ) from None


def _opened(what: str) -> AbstractContextManager[Fetch]:
    if what.startswith(("http://", "https://")):
        return nullcontext(partial(get, what.rstrip("/")))
    return dump.reading(Path(what))


def _kept(fetch: Fetch, save: Path | None) -> AbstractContextManager[Fetch]:
    return nullcontext(fetch) if save is None else dump.keeping(fetch, save)


def get(address: str, path: str) -> bytes:
    with urlopen(address + path, timeout=60) as response:  # noqa: S310 - http and https only
        raw: bytes = response.read()
    return raw
