"""Witnessed runs: provers that leave steps out, compute less precisely, or train something else.

The server recomputes in earnest. Runs have four segments, all of which are opened, unless the
prover guesses which ones are.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.fakes import results
from tests.fakes.live import NO_LIMITS, running_server
from tests.fakes.speed_prover import Prover, bfloat16, tf32
from tests.fakes.speed_runs import JSON, PATH, Run, invented_states

from bench_agent.worker.speed_run import States
from bench_protocol.training import speed_run
from bench_server.db import migrate
from bench_server.db.store import open_engine
from bench_server.ingest.speed_runs import UNPROVEN

from . import Line

SETTINGS = NO_LIMITS | {
    "BENCH_SERVER_RECOMPUTE": "yes",
    "BENCH_SERVER_WITNESS_RUNS_A_DAY": "100",
}
# Each prover has a key of its own, because a key may not have many runs that are not proven.
HONEST, LEAVING, *PROVERS = (results.private_key(seed) for seed in range(1, 9))
SEGMENTS = speed_run.LEAST_SEGMENTS
MANY_SEGMENTS, GUESSED = 20, (3, 7, 12, 18)
STEPS_LEFT = speed_run.STEPS * 4 // 5
# The server answers a question about a run after so long at most.
WAIT_SECONDS, WAITS = 15, 12
Train = Callable[[Run], States]


def witnessed(folder: Path) -> Iterator[Line]:
    """An honest run, provers that the recomputation refutes, and openings that the root refuses."""
    database = f"sqlite:///{folder / 'witnessed.db'}"
    engine = open_engine(database)
    migrate.migrate(engine)
    engine.dispose()
    with (
        running_server(database, folder, **SETTINGS) as address,
        httpx.Client(base_url=address, timeout=60) as http,
    ):
        for key in (HONEST, LEAVING, *PROVERS):
            content = results.enrollment(key)
            http.post("/api/v1/keys", content=content, headers=JSON).raise_for_status()
        honest = _trained(http, lambda run: Prover(run.seed).states(SEGMENTS), HONEST)
        said = _judged(honest)
        yield Line("none: an honest prover in float32", *_outcome(said, "witnessed"))
        size = http.get("/api/v1/log").json()["size"]
        for key, (attack, train) in zip(PROVERS, _provers(honest.states).items(), strict=True):
            said = _judged(_trained(http, train, key))
            yield Line(attack, *_outcome(said, "refuted"))
        yield from _other_roots(http, honest)
        yield _left_and_tried_again(http)
        grown = http.get("/api/v1/log").json()["size"] - size
        yield Line("the same: what the log states", f"{grown} statements", grown == 0)


def _provers(of_another_nonce: States) -> dict[str, Train]:
    """What is trained, by the attack."""
    return {
        "a fifth of the steps left out": lambda run: Prover(run.seed).states(SEGMENTS, STEPS_LEFT),
        "states in TF32": lambda run: Prover(run.seed).states(SEGMENTS, cut=tf32),
        "states in bfloat16": lambda run: Prover(run.seed).states(SEGMENTS, cut=bfloat16),
        "states of another nonce": lambda run: of_another_nonce,
        "states precomputed before the beacon": _precomputed,
        "only those openings trained that are guessed": _guessed,
    }


def _precomputed(run: Run) -> States:
    """Trained under this nonce and a beacon that is guessed."""
    return Prover(speed_run.seed_of(run.nonce, token_hex(32))).states(SEGMENTS)


def _guessed(run: Run) -> States:
    """Four of twenty segments are trained."""
    prover, states, leaf = Prover(run.seed), States(), b""
    empty = bytes(speed_run.state_bytes())
    for number in range(MANY_SEGMENTS):
        start = speed_run.start_seed(run.seed, number, leaf)
        leaf = states.add(prover.segment(start) if number in GUESSED else empty)
    return states


def _trained(http: httpx.Client, train: Train, key: Ed25519PrivateKey) -> Run:
    """A run that is sent whole."""
    run = Run(http, key)
    run.begin()
    run.states = train(run)
    return run.send()


def _judged(run: Run) -> dict[str, object]:
    """The server's answer, once it has recomputed the run."""
    for _ in range(WAITS):
        answer = run.answer(WAIT_SECONDS)
        if answer["state"] != "waiting":
            break
    return answer


def _outcome(said: dict[str, object], wanted: str) -> tuple[str, bool]:
    words = said["state"] if said["reason"] is None else f"{said['state']}: {said['reason']}"
    return str(words), said["state"] == wanted


def _other_roots(http: httpx.Client, honest: Run) -> Iterator[Line]:
    """A run is committed to states that nobody trained; right ones follow."""
    run = Run(http, states=invented_states(SEGMENTS))
    run.begin()
    run.commit()
    run.states = honest.states
    second, opened = run.send_root(), run.put(run.opened[0])
    for attack, answer, code in (
        ("a second root", second, "conflict"),
        ("openings of a second root", opened, "invalid_proof"),
    ):
        said = answer.json()
        outcome = f"{answer.status_code} {said['code']}: {said['detail']}"
        yield Line(attack, outcome, said["code"] == code)


def _left_and_tried_again(http: httpx.Client) -> Line:
    """A prover whose draw would betray it sends nothing, and begins again."""
    states = invented_states(SEGMENTS)
    for _ in range(UNPROVEN):
        run = Run(http, LEAVING, states)
        run.begin()
        run.commit()
    answer = http.post(PATH, content=Run(http, LEAVING).start(), headers=JSON)
    said = answer.json()
    return Line(
        f"{UNPROVEN} runs left because of their draw, and another one",
        f"{answer.status_code} {said.get('code', 'begun')}: {said.get('detail', '')}",
        said.get("code") == "too_many_requests",
    )
