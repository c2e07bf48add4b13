"""Fetch a log from a server's public answers, in chunks."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import groupby

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol.base import strict_json
from bench_protocol.base.errors import InvalidProof, ProtocolError
from bench_protocol.payload import statement
from bench_protocol.signing import envelope, keys, merkle, tiles

from . import shown
from .chunk import ENTRIES, Chunk
from .figures import Level
from .shown import Record

Fetch = Callable[[str], bytes]
# Two processes log moments apart in any order.
SET_BACK = timedelta(minutes=1)


class Chunks:
    """The first ``size`` entries of a log, fetched as they are iterated over.

    ``notes``: the signed checkpoints that were shown with entries, by the entry's index;
    ``withheld``: entries whose envelope is not shown; ``levels``: the trust levels of results, and
    whether they are ranked, where they follow from ``as_of`` entries; ``set_back``: the entries
    before which the server's clock was set back. All are complete after the last chunk. ``keys``:
    those of the key events so far, by key id.
    """

    def __init__(self, fetch: Fetch, size: int, as_of: int) -> None:
        self.notes: dict[int, str] = {}
        self.levels: dict[int, Level] = {}
        self.set_back: list[int] = []
        self.withheld = 0
        self.keys: dict[str, Ed25519PublicKey] = {}
        self._newest_at = datetime.min.replace(tzinfo=UTC)
        self._as_of = as_of
        self._fetch = fetch
        self._size = size

    def __iter__(self) -> Iterator[Chunk]:
        groups = groupby(self._records(), lambda record: record["log_index"] // ENTRIES)
        number, group = next(groups, (None, None))
        for address in tiles.entries_addresses(self._size):
            at = tiles.parse_tile_number(address.removeprefix("/tile/entries/"))[0]
            records = {}
            if number == at and group is not None:
                records = {record["log_index"]: record for record in group}
                number, group = next(groups, (None, None))
            yield self._chunk(at * ENTRIES, address, records)

    def _chunk(self, start: int, address: str, records: dict[int, Record]) -> Chunk:
        end = min(start + ENTRIES, self._size)
        for index, record in records.items():
            if record["checkpoint"] is not None:
                self.notes[index] = record["checkpoint"]
            if self._newest_at - record["logged_at"] > SET_BACK:
                self.set_back.append(index)
            self._newest_at = record["logged_at"]
            self.withheld += record["envelope"] is None
            if record["kind"] == "key_event":
                with suppress(ProtocolError, KeyError, TypeError, ValueError):
                    self._keep_key(record)
        entries = self._entries(address, end - start)
        hashes = [] if entries is None else self._hashes(start, end - start)
        return Chunk(start, end, records, entries, hashes)

    def _keep_key(self, record: Record) -> None:
        opened = envelope.read(strict_json.dumps(record["envelope"]))
        key = statement.public_key(strict_json.loads(opened.payload)["public_key"])
        self.keys[keys.key_id(key)] = key

    def _records(self) -> Iterator[Record]:
        start: int | None = 0
        newest = -1
        while start is not None and newest < self._size - 1:
            path = f"/api/v1/log/entries?start={start}"
            page = shown.read(shown.RECORDS, path, self._fetch(path))
            for record in page["records"]:
                if record["log_index"] <= newest:
                    raise InvalidProof("the entries are not shown in the order of the log")
                newest = record["log_index"]
                if newest >= self._size:
                    continue
                level, ranked = record["trust_level"], record["ranked"]
                if page["as_of"] == self._as_of and level is not None and ranked is not None:
                    self.levels[newest] = Level(level, ranked)
                yield record
            start = page["next_start"]

    def _entries(self, address: str, count: int) -> list[bytes] | None:
        """The leaves of a chunk; None if they cannot be read."""
        try:
            entries = tiles.decode_entries(self._fetch(address))
        except (ProtocolError, OSError):
            return None
        return entries if len(entries) == count else None

    def _hashes(self, start: int, count: int) -> list[bytes]:
        tile = self._fetch(tiles.tile_address(0, start // ENTRIES, self._size))
        width = merkle.HASH_BYTES
        hashes = [tile[at : at + width] for at in range(0, len(tile), width)]
        return hashes if len(hashes) == count else []
