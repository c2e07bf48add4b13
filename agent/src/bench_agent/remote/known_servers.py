"""The servers that this machine knows, each in a file of the agent's home."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_protocol.base.errors import InvalidProof, ProtocolError
from bench_protocol.signing import note, receipts

from ..base.errors import HomeProblem
from ..base.home import Home, read_json


@dataclass(frozen=True)
class ServerState:
    """Origin and key from the first contact, and the newest checkpoint. ``seen_at``: when the
    agent first saw it, by this machine's clock. ``license``: the licence that the user agreed to,
    or None.
    """

    origin: str
    key: str
    checkpoint: str
    seen_at: str
    license: str | None = None


def state_of(document: Any, path: Path) -> ServerState:
    """The state in a server's file.

    Raises:
        HomeProblem: it lacks a part. Without ``seen_at`` any statement of a loss would be newer
            than the checkpoint, so no default is safe.
    """
    try:
        return ServerState(**document["known"])
    except (KeyError, TypeError):
        raise HomeProblem(f"{path} holds no checkpoint; move it away: it is damaged") from None


def server_of(home: Home, checkpoint: str) -> tuple[str, ServerState]:
    """Find the server whose log signed a checkpoint: its address and stored state.

    Raises:
        InvalidProof: no known log signed it.
    """
    for path in sorted(home.servers.glob("*.json")):
        document = read_json(path)
        server = state_of(document, path)
        with suppress(ProtocolError):
            receipts.open_checkpoint(checkpoint, note.parse_key(server.key))
            return str(document["server"]), server
    raise InvalidProof(
        "its receipt comes from a log that this machine does not know", field="receipt"
    )


def addresses(home: Home) -> list[str]:
    return [str(read_json(path)["server"]) for path in home.servers.glob("*.json")]
