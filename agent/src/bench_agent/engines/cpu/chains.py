"""How a processor's cores share a step of ``tuned``: the batch is cut into chains, side by side.

TensorFlow cuts each operation among the cores, and the cores wait for each other after each; in MLX
one core works on all but the matrix products. The samples of a batch do not depend on each other:
in a chain of their own, one core works through them from the picture to the gradients. The chains'
gradients together are the batch's.
"""

from collections.abc import Iterable

from ..common import available_cores

MOST_CHAINS = 4
# With more weights, adding up the chains' gradients costs more than the cores gain.
MOST_WEIGHTS = 5_000_000


def chains(batch_size: int, weights: int, units: Iterable[int] = ()) -> int:
    """Into how many equal chains to cut a batch on a CPU; 1 leaves it whole.

    Args:
        weights: how many there are that every chain has a gradient of.
        units: what else is to be cut into as many equal parts.
    """
    if weights > MOST_WEIGHTS:
        return 1
    numbers = (batch_size, *units)
    most = min(available_cores(), MOST_CHAINS)
    return max(c for c in range(1, most + 1) if all(number % c == 0 for number in numbers))


def threads_each(chains: int) -> int:
    """A chain's share of the cores."""
    return max(1, available_cores() // chains)
