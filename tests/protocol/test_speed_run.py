"""Witnessed runs: draws, proofs, statements, and which provers are caught."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.fakes import speed_prover
from tests.fakes.speed_prover import Prover

from bench_agent.worker.speed_run import States
from bench_protocol.base.errors import InvalidField, InvalidProof
from bench_protocol.recompute.segments import Segments, state_of, weights_of
from bench_protocol.training import speed_run
from bench_protocol.training.speed_run import Opening

# Distances of segments from starts 0, 1, 2, ... under one seed, trained in NumPy float32 by
# tests/fakes/speed_prover.py: as it is, with products in less precision, with 19 of 20 steps.
RECORDED = json.loads(Path(__file__).with_name("speed_run_distances.json").read_text())
RUNS = 60
SEED = f"{77:032x}"


def refuted(distances: Sequence[float], run: int, openings: int = 8) -> bool:
    """Whether a run whose segments have these distances is refuted."""
    root, draw = f"{run:064x}", f"{run + 1000:064x}"
    opened = speed_run.drawn(root, draw, len(distances), openings)
    shown = [Opening(segment=number, distance=distances[number]) for number in opened]
    return speed_run.why_refuted(shown) is not None


def caught(recorded: Sequence[float], openings: int = 8, left_out: int = 0) -> int:
    """How many of 60 runs of 20 segments are refuted; ``left_out``: segments not trained at all."""
    rng = random.Random(1)
    count = 0
    for run in range(RUNS):
        distances = [rng.choice(recorded) for _ in range(20)]
        for segment in rng.sample(range(20), left_out):
            distances[segment] = 1.0
        count += refuted(distances, run, openings)
    return count


@pytest.mark.parametrize("openings", speed_run.OPENINGS)
def test_an_honest_prover_is_never_refuted(openings: int) -> None:
    assert caught(RECORDED["float32"], openings) == 0


def test_a_prover_that_leaves_out_a_fifth_is_caught() -> None:
    assert caught(RECORDED["float32"], left_out=4) >= 50


@pytest.mark.parametrize("openings", speed_run.OPENINGS)
@pytest.mark.parametrize("kind", ["tf32", "bfloat16", "one_step_less"])
def test_less_precision_or_a_step_less_in_each_segment_is_always_caught(
    kind: str, openings: int
) -> None:
    assert caught(RECORDED[kind], openings) == RUNS


def test_a_drawn_segment_follows_from_root_and_draw() -> None:
    root, draw = "ab" * 32, "cd" * 32
    assert speed_run.drawn(root, draw, 100, 4) == speed_run.drawn(root, draw, 100, 4)
    assert set(speed_run.drawn(root, draw, 100, 4)) < set(speed_run.drawn(root, draw, 100, 8))
    assert speed_run.drawn(root, "ce" * 32, 100, 4) != speed_run.drawn(root, draw, 100, 4)
    assert speed_run.drawn(root, draw, 4, 8) == (0, 1, 2, 3)


@pytest.mark.parametrize("segments", [4, 5, 512])
def test_an_opened_segment_is_read_back(segments: int) -> None:
    states = States()
    for number in range(segments):
        states.add(b"%04d" % number if segments > 5 else bytes([number]) * speed_run.state_bytes())
    if segments > 5:
        assert len(states.opened(300).proof) == 9
        return
    for number in range(segments):
        opened = states.opened(number)
        assert speed_run.read_opened(opened.body, number, segments, states.root) == opened
        with pytest.raises(InvalidProof):
            speed_run.read_opened(opened.body, number, segments, bytes(32))
        with pytest.raises(InvalidField):
            speed_run.read_opened(opened.body + b"x", number, segments, states.root)


def test_eight_opened_segments_are_at_most_14_mb() -> None:
    last = speed_run.MOST_SEGMENTS - 1
    assert 8 * speed_run.opened_bytes(last, speed_run.MOST_SEGMENTS) < 14e6


def test_segments_cannot_be_trained_side_by_side() -> None:
    """A start seed follows from the state before."""
    seeds = {speed_run.start_seed(SEED, 1, bytes([n]) * 32) for n in range(9)}
    assert len(seeds) == 9
    assert speed_run.start_seed(SEED, 0, b"") == SEED


def test_a_state_is_the_weights() -> None:
    values = np.arange(speed_run.state_bytes() // 4, dtype=np.float32)
    layers = weights_of(values.tobytes())
    assert state_of(value for layer in layers for value in layer.values()) == values.tobytes()
    with pytest.raises(ValueError, match="not"):
        weights_of(values.tobytes() + bytes(4))


def test_a_segment_of_an_honest_prover_and_the_next_in_bfloat16() -> None:
    prover, segments, states = Prover(SEED), Segments(SEED), States()
    leaf = states.add(prover.segment(SEED))
    start = speed_run.start_seed(SEED, 1, leaf)
    states.add(prover.segment(start, cut=speed_prover.bfloat16))
    assert segments.distance(0, states.opened(0)) < speed_run.MEDIAN_LIMIT
    assert speed_run.MEDIAN_LIMIT < segments.distance(1, states.opened(1)) < 10 * speed_run.LIMIT
