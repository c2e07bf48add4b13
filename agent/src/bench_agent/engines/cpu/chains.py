"""Chains: the cores of a CPU share a step of ``tuned`` by cutting the batch into parallel parts.

TensorFlow cuts each operation among the cores, which wait for each other after each one. In MLX one
core does all but the matrix products. The samples of a batch are independent, so one core can
compute a part of them, a chain, from the pictures to the gradients. The sum of the chains'
gradients is the batch's gradient.
"""

from collections.abc import Iterable

from ..common import available_cores

MOST_CHAINS = 4
# With more weights, the sum of the chains' gradients costs more than the cores gain.
MOST_WEIGHTS = 5_000_000


def chains(batch_size: int, weights: int, units: Iterable[int] = ()) -> int:
    """The number of equal chains to cut a batch into on a CPU; 1 leaves it whole.

    Args:
        weights: the number of weights that every chain computes a gradient of.
        units: other numbers that must be divisible by the number of chains.
    """
    if weights > MOST_WEIGHTS:
        return 1
    numbers = (batch_size, *units)
    most = min(available_cores(), MOST_CHAINS)
    return max(c for c in range(1, most + 1) if all(number % c == 0 for number in numbers))


def pool_threads(chains: int) -> int:
    """The threads of a framework's pool, which a process has once, for all chains.

    One where every core has a chain of its own, else one for each core that may be used: the
    operations of the chains then share the cores that the chains leave over.
    """
    cores = available_cores()
    return 1 if chains == cores else cores
