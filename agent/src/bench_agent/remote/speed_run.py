"""The client's side of a witnessed run: start, root, opened segments, outcome."""

from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.catalogue.matrix import DeviceKind
from bench_protocol.payload import acts
from bench_protocol.payload.result import Challenge
from bench_protocol.signing import envelope, keys
from bench_protocol.training import speed_run
from bench_protocol.training.speed_run import SpeedRunRoot, SpeedRunStart

from ..base.errors import ServerUnreachable
from .client import Client

PATH = "/api/v1/speed-runs"
# The server waits for so long in one answer.
WAIT_SECONDS = 15


@dataclass(frozen=True)
class Opened:
    """What the server drew from the root."""

    segments: tuple[int, ...]
    samples_per_second: int


class SpeedRunClient:
    """One witnessed run at one server.

    The server's answers are checked: the draw is the one whose hash came with the beacon, and the
    segments follow from it.
    """

    def __init__(self, client: Client, key: Ed25519PrivateKey, challenge: Challenge) -> None:
        self._client = client
        self._key = key
        self._challenge = challenge
        self._beacon = self._draw_sha256 = ""

    def begin(self) -> str:
        """Ask for the beacon: the server's clock starts. Returns the seed.

        Raises:
            ServerUnreachable, ServerRefused: see there.
        """
        said = SpeedRunStart(
            challenge=self._challenge.id, nonce=self._challenge.nonce, **self._names()
        )
        answer = self._client.post(PATH, self._sealed(speed_run.START_PAYLOAD_TYPE, said))
        self._beacon, self._draw_sha256 = str(answer["beacon"]), str(answer["draw_sha256"])
        return speed_run.seed_of(self._challenge.nonce, self._beacon)

    def commit(
        self,
        root: str,
        segments: int,
        framework: str,
        device: DeviceKind,
        machine_hash: str,
        training_ns: int,
    ) -> Opened:
        """Send the root: the server's clock stops. What it opens.

        Raises:
            ServerUnreachable: see there; also if the draw does not follow.
            ServerRefused: see there.
        """
        said = SpeedRunRoot(
            challenge=self._challenge.id,
            beacon=self._beacon,
            root=root,
            segments=segments,
            framework=framework,
            device=device,
            machine_hash=machine_hash,
            training_ns=training_ns,
            **self._names(),
        )
        sealed = self._sealed(speed_run.ROOT_PAYLOAD_TYPE, said)
        answer = self._client.post(f"{PATH}/root", sealed)
        draw, opened = str(answer["draw"]), tuple(answer["segments_to_open"])
        follows = {speed_run.drawn(root, draw, segments, n) for n in speed_run.OPENINGS}
        if speed_run.commitment_of(draw) != self._draw_sha256 or opened not in follows:
            raise ServerUnreachable(f"{self._client.server} did not draw as it had promised")
        return Opened(opened, int(answer["samples_per_second"]))

    def upload(self, segment: int, body: bytes) -> None:
        """Send an opened segment.

        Raises:
            ServerUnreachable, ServerRefused: see there.
        """
        self._client.put(f"{PATH}/{self._challenge.id}/segments/{segment}", body)

    def outcome(self) -> dict[str, Any]:
        """The state of the run, after WAIT_SECONDS at most.

        Raises:
            ServerUnreachable, ServerRefused: see there.
        """
        return self._client.read(f"{PATH}/{self._challenge.id}?wait={WAIT_SECONDS}")

    def _names(self) -> dict[str, str]:
        return {
            "key_id": keys.key_id(self._key.public_key()),
            "server_origin": self._challenge.server_origin,
        }

    def _sealed(self, payload_type: str, said: SpeedRunStart | SpeedRunRoot) -> bytes:
        return envelope.seal(payload_type, acts.payload(said), self._key)
