"""A transparency log in memory: its tiles, receipts and checkpoints, and a fork of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.signing import breaks, envelope, merkle, note, receipts, tiles

from .results import private_key

ORIGIN = "log.example"
SALT = bytes(range(32))
KEY = private_key(5)


@dataclass
class Log:
    """Entries are commitments to envelopes; ``fetched`` lists the addresses that were asked for."""

    entries: list[bytes] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)

    def add(self, raw: bytes) -> int:
        self.entries.append(receipts.commitment(SALT, envelope.read(raw)))
        return len(self.entries) - 1

    def checkpoint(self, size: int) -> str:
        root = merkle.range_hash(self._nodes(size), 0, size)
        return receipts.Checkpoint(ORIGIN, size, root).signed(KEY)

    def state_break(self, kept: int, at: str, key: Ed25519PrivateKey = KEY) -> str:
        """Sign that all entries from ``kept`` on are lost."""
        root = merkle.range_hash(self._nodes(kept), 0, kept)
        tree = receipts.Checkpoint(ORIGIN, kept, root)
        return breaks.LogBreak(tree, "none", at, "a disk failed").signed(key)

    def receipt(self, index: int, size: int) -> dict[str, str | int]:
        nodes = self._nodes(size)
        path = [merkle.range_hash(nodes, *each) for each in merkle.inclusion_ranges(index, size)]
        proof = receipts.Receipt(index, SALT, tuple(path), self.checkpoint(size)).proof
        return {"log_index": index, "salt": SALT.hex(), "proof": proof}

    def fetch(self, path: str) -> bytes:
        self.fetched.append(path)
        if path == "/api/v1/log":
            newest = self.checkpoint(len(self.entries))
            key = str(note.note_key(ORIGIN, KEY))
            stated = [{"statement": text} for text in self.statements]
            shown = {"origin": ORIGIN, "key": key, "checkpoint": newest, "breaks": stated}
            return json.dumps(shown).encode()
        level, _, number = path.removeprefix("/tile/").partition("/")
        index, width = tiles.parse_tile_number(number)
        nodes, start = self._nodes(len(self.entries)), index * tiles.WIDTH
        return b"".join(nodes[tiles.HEIGHT * int(level), at] for at in range(start, start + width))

    def _nodes(self, size: int) -> dict[merkle.Node, bytes]:
        frontier, nodes = merkle.Frontier(), {}
        for entry in self.entries[:size]:
            nodes.update(frontier.add(merkle.leaf_hash(entry)))
        return nodes


def log_of(raws: Sequence[bytes]) -> Log:
    log = Log()
    for raw in raws:
        log.add(raw)
    return log
