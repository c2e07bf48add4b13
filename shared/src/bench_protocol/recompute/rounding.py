"""The effect of rounding on the losses and movements of a trace.

Where the input of a ReLU is nearer to zero than float32 rounds, or two inputs of a maximum differ
by less, rounding decides which way the gradient goes. Under RMSprop and Adam even a tiny gradient
moves a weight a full step, so a whole unit may train in one computation and not in another. Under
SGD a gradient changes by parts in a thousand.
"""

from collections.abc import Sequence

from ..catalogue import seeded
from ..training.conformance import deviations
from ..training.recomputed import Recomputed
from ..training.trace_limits import LEAST_MOVEMENT
from .arrays import Values
from .training import Job, Training

# Starting weights change by up to this share, some thirty roundings of float32: errors add up over
# the hundreds of products of a sum. Each pair changes them once up and once down. One pair found
# what rounding decided in 11 to 16 of 16 trials (docs/results.md, "Seeded traces").
NUDGE, PAIRS = 2e-6, 3


def rounding(job: Job, right: Recomputed) -> Recomputed:
    """The largest relative changes of a job's figures when its starting weights change a little, as
    deviations of traces are counted.

    In each pair one training multiplies each starting weight by ``1 + NUDGE (2 u - 1)``, another by
    ``1 - NUDGE (2 u - 1)``, with u in [0, 1) from the stream ``rounding/{pair}/{layer}/{name}`` of
    the job's seed.

    Args:
        right: the figures without a change.
    """
    steps = len(right.losses)
    training = Training(job, steps)
    losses, movements = [], []
    for pair in range(PAIRS):
        for nudge in (NUDGE, -NUDGE):
            training.restart()
            _nudge(training.weights, job.seed, pair, nudge)
            losses.append(deviations([training.step() for _ in range(steps)], right.losses))
            movements.append(deviations(training.movements(), right.movements, LEAST_MOVEMENT))
    return Recomputed(_largest(losses), _largest(movements))


def _nudge(weights: Sequence[Values], seed: str, pair: int, nudge: float) -> None:
    for layer, values in enumerate(weights):
        for name, value in values.items():
            words = seeded.raw_words(f"rounding/{pair}/{layer}/{name}", seed, value.size)
            value *= 1 + nudge * (2 * seeded.unit_interval(words).reshape(value.shape) - 1)


def _largest(trainings: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the largest of each value over the trainings."""
    return tuple(map(max, zip(*trainings, strict=True)))
