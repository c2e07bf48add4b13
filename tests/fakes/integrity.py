"""Whether a database has every acknowledged result once, and its log, rows and receipts agree."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import func, select

from bench_protocol.base.errors import ProtocolError
from bench_protocol.signing import envelope, receipts
from bench_server.answers.log_entries import fetch_from
from bench_server.audit.verify import Report, audit
from bench_server.db.store import Store
from bench_server.db.tables import LogEntry, Submission
from bench_server.log.server_keys import Authority
from bench_server.projection import reindex

from .authority import AUTHORITY
from .projected import rows


def audited(store: Store, authority: Authority = AUTHORITY) -> Report:
    with store.reading() as session:
        return audit(fetch_from(session, authority, "CC-BY-4.0"))


def lost(
    store: Store, authority: Authority, acknowledged: Iterable[tuple[bytes, Mapping[str, Any]]]
) -> int:
    """Number of acknowledged (envelope, answer) that are not stored as their receipt says."""
    with store.reading() as session:
        query = select(Submission.id, Submission.payload_sha256, LogEntry.log_index)
        joined = query.join(LogEntry, LogEntry.submission_id == Submission.id)  # type: ignore[arg-type]
        stored = {row.id: (row.payload_sha256, row.log_index) for row in session.execute(joined)}
    count = 0
    for body, answer in acknowledged:
        opened = envelope.read(body)
        try:
            proof = answer["receipt"]
            receipt = receipts.parse_proof(bytes.fromhex(proof["salt"]), proof["proof"])
            receipts.verify_receipt(receipt, opened, authority.log_key)
            is_stored = stored.get(answer["id"]) == (opened.payload_sha256, receipt.index)
        except (ProtocolError, KeyError):
            is_stored = False
        count += not is_stored
    return count


def doubled(store: Store) -> int:
    with store.reading() as session:
        digests = Counter(session.scalars(select(Submission.payload_sha256)))
        entries = Counter(
            session.scalars(select(LogEntry.submission_id).where(LogEntry.kind == "result"))  # type: ignore[arg-type]
        )
    return sum(n - 1 for counts in (digests, entries) for n in counts.values())


def contradictions(store: Store, authority: Authority) -> Iterator[str]:
    """Where a reindex and an audit differ from the projected database, a sentence each."""
    followed = rows(store)
    reindex.reindex(store)
    if rows(store) != followed:
        yield "a reindex gives other rows"
    report = audited(store, authority)
    yield from (fault.detail for fault in report.faults)
    with store.reading() as session:
        results = session.scalar(select(func.count()).select_from(Submission)) or 0
    if report.results != results:
        yield f"verify-log sees {report.results} of {results} results"
