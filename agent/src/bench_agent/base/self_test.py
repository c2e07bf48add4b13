"""The self-test of a device: its figures, and what they show.

A stopwatch is right only if the synchronisation waits, and a precision is what its numbers show,
not what a flag says. :mod:`..worker.self_test` measures the figures.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bench_protocol.base import format as people
from bench_protocol.base.units import DurationNs, PositiveCount, Share, Wire
from bench_protocol.catalogue.matrix import PRODUCTS, DeviceKind, Precision, Recipe

# Work of the three readings, as multiples of the shortest one.
MULTIPLES = (1, 2, 4)
# The slope of the least times over the work, as a share of the longest reading's time per unit of
# work: 1 where a synchronisation waits, 0 where more work takes no more time. Between them lies one
# that waits for a part. There is no upper limit: other programs let short readings pass and disturb
# long ones (1.4 was seen, the most that the slope can be), and no fault needs one, because what is
# not waited for is left. Figures are in docs/methodology.md.
LEAST_GROWTH = 0.6
# The share of the work that may be left after the synchronisation: as in worker/steps_after.py.
MOST_LEFT = 0.2
# The server's tolerance for what a device's bound leaves out.
ABOVE_BOUND = 1.1
# Of 1 + 2**-k these k are tested; TF32 and float16 keep 10 bits of the fraction, bfloat16 keeps 7.
TESTED_BITS = (7, 8, 10, 11, 12, 16, 20)
# Fewest and most bits that each precision keeps. Float32 keeps 23; a convolution by Winograd's
# transformation loses some of them.
KEPT_BITS: dict[Precision, tuple[int, int]] = {
    "float32": (20, 20),
    "tf32": (10, 16),
    "mixed_float16": (10, 10),
    "mixed_bfloat16": (7, 7),
}
# Below float16's smallest number, far above that of the others.
TINY = 2.0**-30


class Waiting(Wire):
    """The slope of time over work, and the work left after the synchronisation.

    ``size``: rows of a matrix product. ``products``: of the shortest reading; the others have
    :data:`MULTIPLES` of it. ``durations_ns``: the least time of each over ``tries``. ``left``: the
    share of its work that was still to do after a reading, the median, of the worst of the three.
    """

    size: PositiveCount
    products: PositiveCount
    durations_ns: tuple[DurationNs, DurationNs, DurationNs]
    left: Share
    tries: PositiveCount

    @property
    def growth(self) -> float:
        """The slope of time over work (least squares), over the longest reading's time per unit
        of work: 1 where time is proportional to work."""
        slope = float(np.polyfit(MULTIPLES, self.durations_ns, 1)[0])
        return slope * MULTIPLES[-1] / self.durations_ns[-1]

    @property
    def waits(self) -> bool:
        """Whether the synchronisation waits for all of the work."""
        return self.growth >= LEAST_GROWTH and self.left <= MOST_LEFT

    @property
    def flops(self) -> float:
        """FLOP/s of the longest reading."""
        products = self.products * MULTIPLES[-1]
        return 2e9 * products * self.size**3 / self.durations_ns[-1]


class Numbers(Wire):
    """The numbers that one recipe computes and copies.

    ``convolution_bits``, ``dense_bits``: how many bits of a fraction these layers keep, the largest
    of :data:`TESTED_BITS` up to which all are kept, 0 if none is; the first is None where the
    engine has no convolutions. ``keeps_tiny``: whether :data:`TINY` does not become zero.
    ``copied``: whether every batch arrived on the device as it was on the host, bit by bit.
    """

    recipe: Recipe
    convolution_bits: int | None
    dense_bits: int
    keeps_tiny: bool
    copied: bool


class Figures(Wire):
    waiting: Waiting
    numbers: tuple[Numbers, ...]


def kept_bits(values: Sequence[float]) -> int:
    """The bits of a fraction that are kept. ``values``: what ``1 + 2**-k - 1`` gave for each of
    :data:`TESTED_BITS`."""
    kept = 0
    for bits, value in zip(TESTED_BITS, values, strict=True):
        if not abs(value - 2.0**-bits) <= 2.0 ** -(bits + 1):
            break
        kept = bits
    return kept


def problems(
    figures: Figures, precision: Precision, kind: DeviceKind, bound_flops: float | None
) -> Iterator[str]:
    """The problems of a device in a precision, a sentence each; empty if it may be measured.
    ``bound_flops``: FLOP/s that nothing of its kind exceeds; None if no bound is known."""
    waiting = figures.waiting
    if not waiting.waits:
        yield (
            f"the synchronisation does not wait for the {kind} device: four times the work takes "
            f"{waiting.durations_ns[-1] / waiting.durations_ns[0]:.1f} times as long, and "
            f"{people.percent(waiting.left, 0)} of it is left to do"
        )
    if bound_flops is not None and waiting.flops > ABOVE_BOUND * bound_flops:
        yield (
            f"matrix products reach {waiting.flops / 1e12:.4g} TFLOP/s, the device at most "
            f"{bound_flops / 1e12:.4g}"
        )
    recipes: dict[str, list[str]] = {}
    for numbers in figures.numbers:
        for problem in _wrong_numbers(numbers, precision):
            recipes.setdefault(problem, []).append(numbers.recipe)
    for problem, names in recipes.items():
        yield f"{problem} ({', '.join(names)})"


def _wrong_numbers(numbers: Numbers, precision: Precision) -> Iterator[str]:
    fewest, most = KEPT_BITS[precision]
    expected = f"{fewest} to {most}" if fewest < most else str(fewest)
    if most == TESTED_BITS[-1]:
        expected = f"{fewest} or more"
    layers = {"convolutions": numbers.convolution_bits, "dense layers": numbers.dense_bits}
    for name, bits in layers.items():
        if bits is not None and not fewest <= bits <= most:
            yield f"{name} keep {bits} bits of a fraction, {PRODUCTS[precision]} keeps {expected}"
    if numbers.keeps_tiny == (precision == "mixed_float16"):
        told = "tell" if numbers.keeps_tiny else "do not tell"
        yield f"dense layers {told} 2^-30 from zero"
    if not numbers.copied:
        yield "batches do not arrive as they were sent"
