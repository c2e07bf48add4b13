"""Forged results: invented, replayed and precomputed readings, each signed, sent and accepted as
any result. The server recomputes in earnest. Tests and ``make audit`` send them all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.result import Challenge, Result
from bench_protocol.payload.witness import Reading, Witness
from bench_server.checks.verdicts import CheckVerdict, from_text
from bench_server.db.store import Store
from bench_server.db.tables import Measurement
from bench_server.ingest.accept import Accepted
from bench_server.ingest.inbox import Inbox
from bench_server.recompute.worker import compute

from . import results
from .authority import AUTHORITY
from .projected import settle
from .seeding import seed_honestly, with_measurement
from .trusted import BEGAN, TOOK, TOOK_NS, challenge_of

NAME = "mnist-dense"
DIGEST = workload_named(NAME).digest
OTHER_NONCE = "0f" * 32
Readings = tuple[Reading, ...]
KEY, OTHER_KEY = results.private_key(), results.private_key(2)


@dataclass(frozen=True)
class Scene:
    store: Store

    def challenge(self, key: Ed25519PrivateKey = KEY) -> Challenge:
        return challenge_of(self.store, key, BEGAN)

    def honest(self, challenge: Challenge | None = None, **overrides: object) -> Result:
        bound = challenge or self.challenge()
        return seed_honestly(_plain(challenge=bound, **overrides))

    def unseeded(self) -> Result:
        """The session of an own nonce, under a fresh challenge."""
        own = seed_honestly(_plain(nonce=OTHER_NONCE))
        return own.model_copy(update={"challenge": self.challenge(), "nonce": None})

    def level(self, result: Result, at: datetime | None = None) -> int:
        """The trust level of a result that is sent at a time, once it is recomputed."""
        return self.judged(result, at)[0]

    def judged(
        self, result: Result, at: datetime | None = None
    ) -> tuple[int, tuple[CheckVerdict, ...]]:
        raw = results.sealed(result, KEY)
        now = at or BEGAN + TOOK
        (waiting,) = Inbox(self.store, AUTHORITY).accept([raw], now)
        answer = waiting.result(60)
        assert isinstance(answer, Accepted), answer
        settle(self.store, compute)
        with self.store.reading() as session:
            row = session.get_one(Measurement, answer.id)
            return row.trust_level, from_text(row.verdicts)


def _plain(**overrides: object) -> Result:
    clocks = results.clocks_of(BEGAN, TOOK_NS)
    cell = results.make_cell(NAME)
    return results.make_result(key=KEY, cell=cell, clocks=clocks, **overrides)  # type: ignore[arg-type]


def changed(result: Result, change: Callable[[Witness], Witness]) -> Result:
    measured = result.measurement
    assert measured is not None
    assert measured.witness is not None
    return with_measurement(
        result, measured.model_copy(update={"witness": change(measured.witness)})
    )


def each_reading(witness: Witness, change: Callable[[Reading], dict[str, object]]) -> Witness:
    readings = tuple(one.model_copy(update=change(one)) for one in witness.readings)
    return witness.model_copy(update={"readings": readings})


def with_readings(witness: Witness, *fields: str, of: Witness) -> Witness:
    readings = (
        one.model_copy(update={name: getattr(other, name) for name in fields})
        for one, other in zip(witness.readings, of.readings, strict=True)
    )
    return witness.model_copy(update={"readings": tuple(readings)})


def with_list(result: Result, change: Callable[[Readings], Readings]) -> Result:
    return changed(
        result, lambda right: right.model_copy(update={"readings": change(right.readings)})
    )


def others_witness(scene: Scene) -> Witness:
    own = scene.unseeded().measurement
    assert own is not None
    assert own.witness is not None
    return own.witness


def invented(scene: Scene) -> Result:
    """Invented losses and movements, with the seed that follows from the nonce."""
    return _plain(challenge=scene.challenge())


def invented_movements(scene: Scene) -> Result:
    """Right losses: somebody computed a forward pass only."""
    return changed(
        scene.honest(), lambda right: each_reading(right, lambda _: {"movements": right.movements})
    )


def start_only(scene: Scene) -> Result:
    """The loss before the first step is computed, all else is another session's."""
    other = others_witness(scene)
    return changed(
        scene.honest(), lambda right: other.model_copy(update={"start_loss": right.start_loss})
    )


def replayed_from_another_challenge(scene: Scene) -> Result:
    """An honest result of an earlier challenge, under a fresh one."""
    earlier = scene.honest()
    return earlier.model_copy(update={"challenge": scene.challenge(), "run_id": "e" * 32})


def replayed_witness(scene: Scene) -> Result:
    """The same, with the fresh challenge's seed."""
    return changed(scene.honest(), lambda _: others_witness(scene))


def replayed_losses(scene: Scene) -> Result:
    other = others_witness(scene)
    return changed(scene.honest(), lambda right: with_readings(right, "loss", of=other))


def replayed_movements(scene: Scene) -> Result:
    other = others_witness(scene)
    return changed(scene.honest(), lambda right: with_readings(right, "movements", of=other))


def copied_readings(scene: Scene) -> Result:
    """One reading is trained, and sent in place of each other one."""
    same = {"loss", "movements"}
    return changed(
        scene.honest(),
        lambda right: each_reading(right, lambda _: right.readings[0].model_dump(include=same)),
    )


def exchanged_readings(scene: Scene) -> Result:
    """The reading from an empty optimiser state in place of the other short one, and vice versa."""
    return with_list(scene.honest(), lambda right: (right[0], *reversed(right[1:])))


def short_readings_only(scene: Scene) -> Result:
    """The long reading is not trained: it is another session's."""
    other = others_witness(scene)
    return with_list(scene.honest(), lambda right: (other.readings[0], *right[1:]))


def precomputed(scene: Scene) -> Result:
    """An honest session of an own nonce, under the challenge."""
    return scene.unseeded()


def precomputed_under_an_own_nonce(scene: Scene) -> Result:
    """Computed at leisure: no challenge."""
    return seed_honestly(_plain(nonce=OTHER_NONCE))


def precomputed_under_a_nonce_in_the_challenges_place(scene: Scene) -> Result:
    """The challenge's id with another nonce."""
    challenge = scene.challenge().model_copy(update={"nonce": OTHER_NONCE})
    return scene.honest(challenge)


def seed_of_another_nonce(scene: Scene) -> Result:
    """A precomputed session that says so itself."""
    seed = nonces.seed_of(OTHER_NONCE, DIGEST)
    return replayed_witness(scene).model_copy(update={"seed": seed})


def challenge_of_another_key(scene: Scene) -> Result:
    return scene.honest(scene.challenge(OTHER_KEY))


def no_readings(scene: Scene) -> Result:
    return with_list(scene.honest(), lambda right: ())


def one_reading_left_out(scene: Scene) -> Result:
    return with_list(scene.honest(), lambda right: right[:-1])


def no_movements(scene: Scene) -> Result:
    return changed(scene.honest(), lambda right: each_reading(right, lambda _: {"movements": ()}))


def slept(scene: Scene) -> Result:
    """The blocks trained nothing: they took a twenty-fifth of the time of the readings' steps."""

    def slower(reading: Reading) -> dict[str, object]:
        return {"durations_ns": tuple(25 * ns for ns in reading.durations_ns)}

    return changed(scene.honest(), lambda right: each_reading(right, slower))


Forgery = Callable[[Scene], Result]
# Ways to have readings without training them under the challenge, by where they come from.
WAYS: dict[str, tuple[Forgery, ...]] = {
    "invented": (invented, invented_movements, start_only),
    "replayed": (
        replayed_from_another_challenge,
        replayed_witness,
        replayed_losses,
        replayed_movements,
    ),
    "copied": (copied_readings, exchanged_readings, short_readings_only),
    "precomputed": (
        precomputed,
        precomputed_under_an_own_nonce,
        precomputed_under_a_nonce_in_the_challenges_place,
        seed_of_another_nonce,
    ),
}
# Forgeries of something else.
OTHERS: tuple[Forgery, ...] = (
    challenge_of_another_key,
    no_readings,
    one_reading_left_out,
    no_movements,
    slept,
)
# The check that betrays a forgery, where it is not the witness: any other reason for a low trust
# level would be a fault of the scene.
_BETRAYED: dict[Forgery, str] = {
    precomputed_under_an_own_nonce: "challenge",
    precomputed_under_a_nonce_in_the_challenges_place: "challenge",
    challenge_of_another_key: "challenge",
    slept: "pace",
}


def betrayed(forge: Forgery, verdicts: tuple[CheckVerdict, ...]) -> list[CheckVerdict]:
    wanted = _BETRAYED.get(forge, "witness")
    return [verdict for verdict in verdicts if not verdict.passed and verdict.check == wanted]
