"""What this machine remembers of each server's log, and its refusal of a log that contradicts it.

Every agent is a witness: it keeps the last checkpoint it saw and takes a newer one only with a
proof that the log grew from it. A server that rewrites its past, or shows different pasts to
different people, is found out by the first of them who comes back.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from bench_protocol import envelope, merkle, note, receipts, tiles
from bench_protocol.errors import InvalidProof, ProtocolError
from bench_protocol.receipts import Checkpoint

from ..base.errors import LogContradiction, ServerUnreachable
from ..base.home import Home, private_folder, write_durably


@dataclass(frozen=True)
class KnownServer:
    """What was learnt at the first contact, and the newest checkpoint since.

    ``license``: what was agreed to, None before that.
    """

    origin: str
    key: str
    checkpoint: str
    license: str | None = None


def server_of(home: Home, checkpoint: str) -> tuple[str, KnownServer]:
    """The server whose log signed a checkpoint: its address, and what is remembered of it.

    Raises:
        InvalidProof: no log that this machine has seen signed it.
    """
    for path in sorted(home.servers.glob("*.json")):
        document = json.loads(path.read_bytes())
        server = KnownServer(**document["known"])
        with suppress(ProtocolError):
            receipts.open_checkpoint(checkpoint, note.parse_key(server.key))
            return str(document["server"]), server
    raise InvalidProof("its receipt is of no log that this machine has seen", field="receipt")


def known_servers(home: Home) -> list[str]:
    """Addresses of the servers that this machine has met."""
    return [str(json.loads(path.read_bytes())["server"]) for path in home.servers.glob("*.json")]


class LogWitness:
    """One server's log as this machine saw it.

    Args:
        server: the server's address.
        fetch: gives the bytes at a path of the server.
    """

    def __init__(self, home: Home, server: str, fetch: Callable[[str], bytes]) -> None:
        self.server = server
        self._path = home.servers / f"{hashlib.sha256(server.encode()).hexdigest()[:16]}.json"
        self._fetch = fetch

    @property
    def stored_server(self) -> KnownServer | None:
        """What is remembered, None before the first contact."""
        if not self._path.exists():
            return None
        return KnownServer(**json.loads(self._path.read_bytes())["known"])

    def meet(self) -> KnownServer:
        """Look at the log's newest checkpoint, and hold it against what is remembered.

        Raises:
            ServerUnreachable: it does not say.
            LogContradiction: another key signs it, or it did not grow from what was seen.
        """
        try:
            state: dict[str, Any] = json.loads(self._fetch("/api/v1/log"))
            seen = KnownServer(str(state["origin"]), str(state["key"]), str(state["checkpoint"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ServerUnreachable(f"{self.server} is not a Trainmark server") from error
        stored = self.stored_server
        if stored is None:
            self._open(seen, seen.checkpoint)
            self._remember(seen)
            return seen
        if (stored.origin, stored.key) != (seen.origin, seen.key):
            raise self._contradiction(
                f"its log was {stored.key}, and is {seen.key} now", seen.checkpoint
            )
        remembered, shown = (self._open(stored, c) for c in (stored.checkpoint, seen.checkpoint))
        if shown.size < remembered.size:
            raise self._contradiction(
                f"the log had {remembered.size} entries and shows {shown.size} now", seen.checkpoint
            )
        return self._follow([seen.checkpoint])

    def check(self, sent: Sequence[tuple[bytes, Any]]) -> None:
        """Check the receipts of envelopes that were sent, with one growth proof for all.

        Args:
            sent: the bytes of each envelope, and the receipt that the server answered.

        Raises:
            LogContradiction: one proves nothing, or its checkpoint is of another history.
        """
        if not sent:
            return
        key = note.parse_key(self._server_state().key)
        shown = []
        for raw, receipt in sent:
            try:
                proof = receipts.parse_proof(bytes.fromhex(receipt["salt"]), receipt["proof"])
                receipts.verify_receipt(proof, envelope.read(raw), key)
            except (ProtocolError, AttributeError, KeyError, TypeError, ValueError) as error:
                raise self._contradiction(f"its receipt proves nothing: {error}", "") from None
            shown.append(proof.checkpoint)
        self._follow(shown)

    def agree(self, license: str) -> None:
        """Remember that a person agreed to publish under this licence."""
        server = self._server_state()
        self._remember(replace(server, license=license))

    def _server_state(self) -> KnownServer:
        stored = self.stored_server
        return stored if stored is not None else self.meet()

    def _open(self, server: KnownServer, checkpoint: str) -> Checkpoint:
        try:
            return receipts.open_checkpoint(checkpoint, note.parse_key(server.key))
        except ProtocolError as error:
            raise self._contradiction(error.detail, checkpoint) from None

    def _follow(self, shown: Iterable[str]) -> KnownServer:
        """Take checkpoints of the log, if they and the remembered one are of one history.

        Each is proved to continue the next smaller one. All these proofs are made of tiles of the
        largest, each fetched once, so they cost no more requests than a single proof.

        Raises:
            LogContradiction: they are not.
        """
        server = self._server_state()
        remembered = self._open(server, server.checkpoint)
        texts = {self._open(server, text): text for text in shown} | {remembered: server.checkpoint}
        history = sorted(texts, key=lambda checkpoint: checkpoint.size)
        newest = history[-1]
        steps = [
            (old, new, merkle.consistency_ranges(old.size, new.size))
            for old, new in pairwise(history)
        ]
        wanted = [node for _, _, ranges in steps for node in merkle.nodes_of(ranges)]
        try:
            nodes = tiles.fetch_nodes(self._fetch, newest.size, wanted)
            for old, new, ranges in steps:
                proof = [merkle.range_hash(nodes, *each) for each in ranges]
                receipts.verify_growth(old, new, proof)
        except ProtocolError as error:
            others = "\n".join(texts[each] for each in history if each != remembered)
            raise self._contradiction(error.detail, others) from None
        server = self._server_state()  # another process may have seen more meanwhile
        if newest.size > self._open(server, server.checkpoint).size:
            server = replace(server, checkpoint=texts[newest])
            self._remember(server)
        return server

    def _remember(self, server: KnownServer) -> None:
        private_folder(self._path.parent)
        document = {"server": self.server, "known": asdict(server)}
        write_durably(self._path, json.dumps(document, indent=1).encode())

    def _contradiction(self, why: str, shown: str) -> LogContradiction:
        stored = self.stored_server
        evidence = self._path.with_suffix(".contradiction")
        private_folder(evidence.parent)
        remembered = stored.checkpoint if stored else ""
        write_durably(evidence, f"{why}\n\n{remembered}\n{shown}".encode())
        return LogContradiction(
            f"THE LOG OF {self.server} CONTRADICTS WHAT THIS MACHINE SAW OF IT: {why}. Nothing "
            f"more is sent. Both checkpoints are in {evidence}: show them to whoever runs the "
            "server, and to others. If the server was set up anew on purpose, remove "
            f"{self._path}"
        )
