"""Checkpoint memory: store each server's last checkpoint and refuse a log that contradicts it.

The agent accepts a newer checkpoint only with a proof that the log grew from the stored one. A
server that rewrites its past, or shows different pasts to different clients, is detected by the
first client that returns. The one exception is a loss that the server states in a signed
note (:mod:`.log_breaks`).
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bench_protocol.base import strict_json
from bench_protocol.base.errors import ProtocolError
from bench_protocol.base.format import plural
from bench_protocol.base.units import utc_text
from bench_protocol.signing import envelope, note, receipts
from bench_protocol.signing.breaks import LogBreak
from bench_protocol.signing.receipts import Checkpoint

from ..base.errors import LogContradiction, ServerUnreachable
from ..base.home import Home, private_folder, read_json, write_durably
from .known_servers import ServerState, state_of
from .log_breaks import explaining, kept_and_lost, sentences
from .log_history import continues, newest_of_one_history, size_of
from .log_receipts import parse_receipt
from .outbox import Outbox


class CheckpointMemory:
    """The last checkpoint of one server's log."""

    def __init__(
        self,
        home: Home,
        server: str,
        fetch: Callable[[str], bytes],
        now: Callable[[], datetime],
        say: Callable[[str], None],
    ) -> None:
        self.server = server
        self._home, self._now, self._say = home, now, say
        self._path = home.servers / f"{hashlib.sha256(server.encode()).hexdigest()[:16]}.json"
        self._fetch = fetch

    @property
    def stored_server(self) -> ServerState | None:
        """The stored state, None before the first contact."""
        if not self._path.exists():
            return None
        return state_of(read_json(self._path), self._path)

    def meet(self) -> ServerState:
        """Fetch the log's newest checkpoint and compare it with the stored one.

        Raises:
            ServerUnreachable: the server does not answer.
            LogContradiction: another key signs it, or it does not extend the stored one and the
                server states no loss since then.
        """
        try:
            state: dict[str, Any] = strict_json.loads(self._fetch("/api/v1/log"))
            named = {name: str(state[name]) for name in ("origin", "key", "checkpoint")}
            seen = ServerState(**named, seen_at=utc_text(self._now()))
            statements = [str(each["statement"]) for each in state.get("breaks", ())]
            if (stored := self.stored_server) is None:
                # Nothing of this server was seen before, so nothing contradicts it.
                receipts.open_checkpoint(seen.checkpoint, note.parse_key(seen.key))
        except (ProtocolError, KeyError, TypeError, ValueError) as error:
            raise ServerUnreachable(f"{self.server} is not a Trainmark server") from error
        if stored is None:
            self._remember(seen)
            return seen
        if (stored.origin, stored.key) != (seen.origin, seen.key):
            raise self._contradiction(
                f"its log was {stored.key}, and is {seen.key} now", seen.checkpoint
            )
        remembered, shown = (self._open(stored, c) for c in (stored.checkpoint, seen.checkpoint))
        key = note.parse_key(stored.key)
        found = explaining(statements, key, remembered, stored.seen_at, self._now())
        if found is not None and not continues(self._fetch, remembered, shown):
            return self._resume(replace(seen, license=stored.license), shown, *found)
        if shown.size < remembered.size:
            had = plural(remembered.size, "entry", "entries")
            raise self._contradiction(
                f"the log had {had} and shows {shown.size} now", seen.checkpoint
            )
        return self._follow([seen.checkpoint])

    def has(self, checkpoint: str) -> bool:
        """Whether the log, as it was seen last, continues a checkpoint of a receipt."""
        server = self._server_state()
        old, newest = (self._open(server, c) for c in (checkpoint, server.checkpoint))
        return continues(self._fetch, old, newest)

    def check(self, sent: Sequence[tuple[bytes, Any]]) -> None:
        """Check the receipts of posted envelopes' bytes, by one growth proof for all.

        Raises:
            LogContradiction: a receipt is invalid, or its checkpoint belongs to another history.
        """
        if not sent:
            return
        key = note.parse_key(self._server_state().key)
        shown = []
        for raw, receipt in sent:
            try:
                proof = parse_receipt(receipt)
                receipts.verify_receipt(proof, envelope.read(raw), key)
            except ProtocolError as error:
                raise self._contradiction(f"its receipt proves nothing: {error}", "") from None
            shown.append(proof.checkpoint)
        self._follow(shown)

    def agree(self, license: str) -> None:
        """Store that the user agreed to publish under this licence."""
        server = self._server_state()
        self._remember(replace(server, license=license))

    def _server_state(self) -> ServerState:
        stored = self.stored_server
        return stored if stored is not None else self.meet()

    def _open(self, server: ServerState, checkpoint: str) -> Checkpoint:
        try:
            return receipts.open_checkpoint(checkpoint, note.parse_key(server.key))
        except ProtocolError as error:
            raise self._contradiction(error.detail, checkpoint) from None

    def _follow(self, shown: Iterable[str]) -> ServerState:
        """Store the newest of some checkpoints if each continues the next smaller one, the stored
        one included. Each tile of the largest is fetched once for all proofs."""
        server = self._server_state()
        remembered = self._open(server, server.checkpoint)
        texts = {self._open(server, text): text for text in shown} | {remembered: server.checkpoint}
        newest = self._require_one_history(texts)
        server = self._server_state()  # another process may have seen more meanwhile
        if newest.size > self._open(server, server.checkpoint).size:
            # Never before an accepted statement, or a slow clock would let it be used again.
            seen_at = max(server.seen_at, utc_text(self._now()))
            server = replace(server, checkpoint=texts[newest], seen_at=seen_at)
            self._remember(server)
        return server

    def _require_one_history(self, texts: Mapping[Checkpoint, str]) -> Checkpoint:
        """The largest of some checkpoints, if each continues the next smaller one."""
        try:
            return newest_of_one_history(self._fetch, texts)
        except ProtocolError as error:
            stored = self._server_state().checkpoint
            others = "\n".join(
                texts[each] for each in sorted(texts, key=size_of) if texts[each] != stored
            )
            raise self._contradiction(error.detail, others) from None

    def _resume(
        self, seen: ServerState, shown: Checkpoint, stated: LogBreak, statement: str
    ) -> ServerState:
        """Accept a log after the loss that it states, if it and each receipt of a kept entry agree
        with the tree that is left. Results whose entries are lost return to the outbox."""
        outbox, size = Outbox(self._home.outbox), stated.kept.size
        kept, lost = kept_and_lost(outbox, note.parse_key(seen.key), size)
        texts = {**kept, stated.kept: statement, shown: seen.checkpoint}
        if max(tree.size for tree in texts) > shown.size:
            why = f"it states that {size} entries are left, and shows {shown.size}"
            raise self._contradiction(why, f"{statement}\n{seen.checkpoint}")
        self._require_one_history(texts)
        for entry in lost:
            outbox.put_back(entry)
        self._keep("break", statement)
        seen = replace(seen, seen_at=max(seen.seen_at, stated.at))
        self._remember(seen)
        submit = self._home.command(f"submit --server {self.server}")
        self._say(sentences(self.server, stated, len(lost), submit))
        return seen

    def _remember(self, server: ServerState) -> None:
        private_folder(self._path.parent)
        document = {"server": self.server, "known": asdict(server)}
        write_durably(self._path, json.dumps(document, indent=1).encode())

    def _keep(self, kind: str, text: str) -> Path:
        """Keep evidence beside what was kept before; the same text once."""
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        path = self._path.with_suffix(f".{digest}.{kind}")
        private_folder(path.parent)
        write_durably(path, text.encode())
        return path

    def _contradiction(self, why: str, shown: str) -> LogContradiction:
        stored = self.stored_server
        remembered = stored.checkpoint if stored else ""
        evidence = self._keep("contradiction", f"{why}\n\n{remembered}\n{shown}")
        return LogContradiction(
            f"THE LOG OF {self.server} CONTRADICTS WHAT THIS MACHINE SAW OF IT: {why}. Nothing "
            f"more is sent. Both checkpoints are in {evidence}: show them to the operator of the "
            "server, and to others. If the operator restored a backup, bench-server state-break "
            "states the loss, and this machine accepts the log again. If the server was "
            f"reinstalled on purpose, remove {self._path}"
        )
