"""How a processor's cores share a step of ``tuned``: the batch is cut into chains, side by side.

TensorFlow cuts each operation among the cores, and the cores wait for each other after each; in MLX
one core works on all but the matrix products. The samples of a batch do not depend on each other:
in a chain of their own, one core works through them from the picture to the gradients. The chains'
gradients together are the batch's.
"""

from bench_protocol.workloads import Workload

from ._common import available_cores

MOST_CHAINS = 4
# With more weights, adding up the chains' gradients costs more than the cores gain.
MOST_WEIGHTS = 5_000_000


def chains(workload: Workload, batch_size: int) -> int:
    """Into how many equal chains to cut a batch on a CPU; 1 leaves it whole."""
    if workload.trained_parameter_count > MOST_WEIGHTS:
        return 1
    most = min(available_cores(), MOST_CHAINS)
    return max(count for count in range(1, most + 1) if batch_size % count == 0)


def threads_each(chains: int) -> int:
    """A chain's share of the cores."""
    return max(1, available_cores() // chains)
