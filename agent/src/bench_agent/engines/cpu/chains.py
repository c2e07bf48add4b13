"""Chains: the cores of a CPU share a step of ``tuned`` by cutting the batch into parallel parts.

TensorFlow cuts each operation among the cores, which wait for each other after each one. In MLX one
core does all but the matrix products. Where the samples of a batch are independent, one core can
compute a part of them, a chain, from the inputs to the gradients. The sum of the chains'
gradients is the batch's gradient.
"""

from collections.abc import Iterable

from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import trained_tensors

from ..common import available_cores

MOST_CHAINS = 4
LEAST_SAMPLES = 4
# With more weights, the sum of the chains' gradients costs more than the cores gain.
MOST_WEIGHTS = 5_000_000
MOST_SUMMED = MOST_CHAINS * MOST_WEIGHTS


def chains(batch_size: int, weights: int, units: Iterable[int] = ()) -> int:
    """The number of equal chains to cut a batch into on a CPU; 1 leaves it whole.

    For a framework that also cuts each operation among the cores (TensorFlow): a few chains are
    enough. Every chain computes a gradient of all ``weights``; the number divides all ``units``.
    """
    if weights > MOST_WEIGHTS:
        return 1
    return _largest_divisor(min(available_cores(), MOST_CHAINS), batch_size, *units)


def are_independent(workload: Workload) -> bool:
    """Whether the samples of a batch are: not where a normalisation takes the batch's mean."""
    return all(tensor.has_gradient for tensor in trained_tensors(workload))


def one_core_chains(workload: Workload, batch_size: int) -> int:
    """The number of chains where one core computes a chain (MLX): if possible one for each core."""
    # A step of a sequence uses each weight once for each of its tokens.
    weights = workload.trained_parameter_count // workload.data_set.units_per_sample
    if weights > MOST_WEIGHTS or not are_independent(workload):
        return 1
    most = min(available_cores(), batch_size // LEAST_SAMPLES, MOST_SUMMED // max(1, weights))
    return _largest_divisor(max(1, most), batch_size)


def blas_threads(chains: int) -> int:
    """The threads of BLAS, whose pool serves one chain at a time.

    One where every core has a chain of its own: their products then run side by side (measured with
    OpenBLAS on two cores: two threads cost seven times the processor time of one). Else all cores.
    """
    cores = available_cores()
    return 1 if chains == cores else cores


def _largest_divisor(most: int, *numbers: int) -> int:
    return max(c for c in range(1, most + 1) if all(number % c == 0 for number in numbers))
