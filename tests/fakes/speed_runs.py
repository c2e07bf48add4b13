"""A key's witnessed run at a server, step by step, over HTTP."""

from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_agent.worker.speed_run import States
from bench_protocol.payload import acts
from bench_protocol.signing import envelope
from bench_protocol.training import speed_run
from bench_protocol.training.speed_run import SpeedRunRoot, SpeedRunStart

from . import results

PATH = "/api/v1/speed-runs"
JSON = {"Content-Type": "application/json"}
BINARY = {"Content-Type": "application/octet-stream"}
SEGMENTS = 10


def invented_states(segments: int = SEGMENTS) -> States:
    """States that no training gives."""
    states = States()
    for segment in range(segments):
        states.add(bytes([segment]) * speed_run.state_bytes())
    return states


class Run:
    """One witnessed run. ``states``: what it sends; with invented ones the judge's distances are
    invented too."""

    def __init__(
        self,
        http: httpx.Client,
        key: Ed25519PrivateKey | None = None,
        states: States | None = None,
    ) -> None:
        self.http, self.key = http, key or results.private_key()
        answer = http.post("/api/v1/challenges", json={"key_id": self.key_id}).json()
        self.id, self.nonce = answer["id"], answer["nonce"]
        self.origin = answer["server_origin"]
        self.states = states or invented_states()

    @property
    def key_id(self) -> str:
        return results.key_id(self.key)

    def start(self, **changes: object) -> bytes:
        said = SpeedRunStart(
            challenge=self.id, nonce=self.nonce, key_id=self.key_id, server_origin=self.origin
        ).model_copy(update=changes)
        return envelope.seal(speed_run.START_PAYLOAD_TYPE, acts.payload(said), self.key)

    def begin(self) -> dict[str, str]:
        answer = self.http.post(PATH, content=self.start(), headers=JSON)
        assert answer.status_code == 201, answer.text
        self.begun: dict[str, str] = answer.json()
        return self.begun

    @property
    def seed(self) -> str:
        """Of the data, the orders and the first weights, once it has begun."""
        return speed_run.seed_of(self.nonce, self.begun["beacon"])

    def root(self, **changes: object) -> bytes:
        said = SpeedRunRoot(
            challenge=self.id,
            beacon=self.begun["beacon"],
            key_id=self.key_id,
            server_origin=self.origin,
            root=self.states.root.hex(),
            segments=len(self.states),
            framework="torch",
            device="cpu",
            machine_hash=results.make_machine().machine_hash,
            training_ns=5_000_000_000,
        ).model_copy(update=changes)
        return envelope.seal(speed_run.ROOT_PAYLOAD_TYPE, acts.payload(said), self.key)

    def send_root(self, **changes: object) -> httpx.Response:
        return self.http.post(f"{PATH}/root", content=self.root(**changes), headers=JSON)

    def commit(self) -> dict[str, Any]:
        answer = self.send_root()
        assert answer.status_code == 200, answer.text
        self.committed: dict[str, Any] = answer.json()
        return self.committed

    def put(self, segment: int, body: bytes | None = None) -> httpx.Response:
        body = self.states.opened(segment).body if body is None else body
        return self.http.put(f"{PATH}/{self.id}/segments/{segment}", content=body, headers=BINARY)

    @property
    def opened(self) -> list[int]:
        return list(self.committed["segments_to_open"])

    def send(self) -> "Run":
        """Send the root and what is opened."""
        self.commit()
        for segment in self.opened:
            assert self.put(segment).status_code == 200
        return self

    def whole(self) -> "Run":
        self.begin()
        return self.send()

    def answer(self, wait_seconds: int = 0) -> dict[str, Any]:
        """The server's answer about the run, after some seconds at most."""
        query = {"wait": wait_seconds} if wait_seconds else {}
        answer: dict[str, Any] = self.http.get(f"{PATH}/{self.id}", params=query).json()
        return answer

    def state(self) -> str:
        return str(self.answer()["state"])
