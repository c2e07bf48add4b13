"""Forged results: invented, replayed and precomputed traces, each signed, sent and accepted as any
result. The server recomputes in earnest. Tests and ``make audit`` send them all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.result import Challenge, Result, Trace
from bench_protocol.training import conformance
from bench_server.checks.verdicts import CheckVerdict, from_text
from bench_server.db.store import Store
from bench_server.db.tables import Measurement
from bench_server.ingest.accept import Accepted
from bench_server.ingest.inbox import Inbox
from bench_server.recompute.worker import compute

from . import results
from .authority import AUTHORITY
from .projected import settle
from .seeding import figures_of, seed_honestly, with_measurement, with_traces
from .trusted import BEGAN, TOOK, TOOK_NS, challenge_of

NAME = "mnist-dense"
DIGEST = workload_named(NAME).digest
OTHER_NONCE = "0f" * 32
KEY, OTHER_KEY = results.private_key(), results.private_key(2)


@dataclass(frozen=True)
class Scene:
    """A store, and challenges of it."""

    store: Store

    def challenge(self, key: Ed25519PrivateKey = KEY) -> Challenge:
        return challenge_of(self.store, key, BEGAN)

    def honest(self, challenge: Challenge | None = None, **overrides: object) -> Result:
        """What an honest agent sends."""
        bound = challenge or self.challenge()
        return seed_honestly(_plain(challenge=bound, **overrides))

    def unseeded(self) -> Result:
        """Traces and session of an own nonce, under a fresh challenge."""
        own = seed_honestly(_plain(nonce=OTHER_NONCE))
        return own.model_copy(update={"challenge": self.challenge(), "nonce": None})

    def level(self, result: Result, at: datetime | None = None) -> int:
        """The trust level of a result that is sent at a time, once it is recomputed."""
        return self.judged(result, at)[0]

    def judged(
        self, result: Result, at: datetime | None = None
    ) -> tuple[int, tuple[CheckVerdict, ...]]:
        """Its trust level and verdicts."""
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


def changed(result: Result, change: Callable[[Trace], Trace]) -> Result:
    """The result with other short traces."""
    assert result.measurement is not None
    traces = result.measurement.traces
    return with_traces(result, [trace if trace.steps else change(trace) for trace in traces])


def replayed(trace: Trace, nonce: str = OTHER_NONCE, workload: str = NAME) -> dict[str, object]:
    """Losses and movements of another nonce's job."""
    batch_size = conformance.trace_batch_size(workload_named(workload))
    right = figures_of(workload, trace.optimizer, nonce, batch_size)
    return {"losses": right.losses, "movements": right.movements}


# -- forgeries ------------------------------------------------------------------------------------


def precomputed(scene: Scene) -> Result:
    """Honest traces and session of an own nonce, under the challenge."""
    return scene.unseeded()


def precomputed_without_long_trace(scene: Scene) -> Result:
    """The same, the long trace left out."""
    own = scene.unseeded()
    assert own.measurement is not None
    return with_traces(own, [trace for trace in own.measurement.traces if not trace.steps])


def invented_under_the_nonces_seeds(scene: Scene) -> Result:
    """Invented losses, with seeds that follow from the nonce."""
    return _plain(challenge=scene.challenge())


def replayed_from_another_challenge(scene: Scene) -> Result:
    """An honest result of an earlier challenge, under a fresh one."""
    earlier = scene.honest()
    return earlier.model_copy(update={"challenge": scene.challenge(), "run_id": "e" * 32})


def replayed_losses(scene: Scene) -> Result:
    """The same, with the fresh challenge's seeds."""
    return changed(scene.honest(), lambda trace: trace.model_copy(update=replayed(trace)))


def replayed_movements(scene: Scene) -> Result:
    """Right losses: somebody computed a forward pass only."""
    return changed(
        scene.honest(),
        lambda trace: trace.model_copy(update={"movements": replayed(trace)["movements"]}),
    )


def no_movements(scene: Scene) -> Result:
    return changed(scene.honest(), lambda trace: trace.model_copy(update={"movements": ()}))


def first_loss_only(scene: Scene) -> Result:
    """The first loss is computed, later ones are taken from another job."""

    def grafted(trace: Trace) -> Trace:
        other = replayed(trace)["losses"]
        return trace.model_copy(update={"losses": (trace.losses[0], *other[1:])})  # type: ignore[index]

    return changed(scene.honest(), grafted)


def one_optimizer_only(scene: Scene) -> Result:
    """The trace under SGD is trained, the other one replayed."""
    return changed(
        scene.honest(),
        lambda trace: (
            trace if trace.optimizer == "sgd" else trace.model_copy(update=replayed(trace))
        ),
    )


def both_from_one_optimizer(scene: Scene) -> Result:
    """SGD's trace, sent twice."""
    honest = scene.honest()
    assert honest.measurement is not None
    sgd = honest.measurement.traces[0]
    same = {"losses": sgd.losses, "movements": sgd.movements}
    return changed(honest, lambda trace: trace.model_copy(update=same))


def precomputed_under_an_own_nonce(scene: Scene) -> Result:
    """Computed at leisure: no challenge."""
    return seed_honestly(_plain(nonce=OTHER_NONCE))


def precomputed_under_a_nonce_in_the_challenges_place(scene: Scene) -> Result:
    """The challenge's id with another nonce."""
    challenge = scene.challenge().model_copy(update={"nonce": OTHER_NONCE})
    return scene.honest(challenge)


def challenge_of_another_key(scene: Scene) -> Result:
    return scene.honest(scene.challenge(OTHER_KEY))


def smaller_batches(scene: Scene) -> Result:
    """Half of each batch."""
    return changed(scene.honest(), lambda trace: trace.model_copy(update={"batch_size": 16}))


def seeds_of_another_nonce(scene: Scene) -> Result:
    """Precomputed traces that say so themselves."""

    def other(trace: Trace) -> Trace:
        seed = nonces.seed_of(OTHER_NONCE, DIGEST, trace.optimizer)
        return trace.model_copy(update={"seed": seed, **replayed(trace)})

    return changed(scene.honest(), other)


def unseeded_session(scene: Scene) -> Result:
    """Honest traces; seed and witness of an own nonce."""
    seed = nonces.seed_of(OTHER_NONCE, DIGEST, "timed")
    return replayed_witness(scene).model_copy(update={"seed": seed})


def replayed_witness(scene: Scene) -> Result:
    """Honest traces; the witness of an own nonce, under the seed of the challenge."""
    honest, own = scene.honest(), scene.unseeded().measurement
    assert honest.measurement is not None
    assert own is not None
    measured = honest.measurement.model_copy(update={"witness": own.witness})
    return with_measurement(honest, measured)


def no_short_traces(scene: Scene) -> Result:
    honest = scene.honest()
    assert honest.measurement is not None
    return with_traces(honest, [trace for trace in honest.measurement.traces if trace.steps])


Forgery = Callable[[Scene], Result]
# Ways to have traces without training them under the challenge, by where they come from.
WAYS: dict[str, tuple[Forgery, ...]] = {
    "invented": (invented_under_the_nonces_seeds, both_from_one_optimizer),
    "replayed": (
        replayed_from_another_challenge,
        replayed_losses,
        replayed_movements,
        first_loss_only,
        one_optimizer_only,
    ),
    "precomputed": (
        precomputed,
        precomputed_without_long_trace,
        precomputed_under_an_own_nonce,
        precomputed_under_a_nonce_in_the_challenges_place,
        seeds_of_another_nonce,
    ),
}
# Forgeries of something else.
OTHERS: tuple[Forgery, ...] = (
    no_movements,
    challenge_of_another_key,
    smaller_batches,
    unseeded_session,
    replayed_witness,
    no_short_traces,
)
FORGERIES = (*(forge for forgeries in WAYS.values() for forge in forgeries), *OTHERS)
# The checks that betray a forgery, one of them at least: any other reason for a low trust level
# would be a fault of the scene.
TRACES, WITNESS, CHALLENGE = {"conformance", "right_computation"}, {"witness"}, {"challenge"}
_BETRAYED: dict[Forgery, set[str]] = {
    precomputed_under_an_own_nonce: CHALLENGE,
    precomputed_under_a_nonce_in_the_challenges_place: CHALLENGE,
    challenge_of_another_key: CHALLENGE,
    unseeded_session: WITNESS,
    replayed_witness: WITNESS,
}


def betrayed(forge: Forgery, verdicts: tuple[CheckVerdict, ...]) -> list[CheckVerdict]:
    """The failed checks that betray a forgery."""
    wanted = _BETRAYED.get(forge, TRACES)
    return [verdict for verdict in verdicts if not verdict.passed and verdict.check in wanted]
