"""The range of a session's losses where its data or its frozen weights are not at hand."""

import math
from collections.abc import Sequence

from ..catalogue.workloads import Workload
from .recomputed import Band, Recomputed

# Limits in units of the loss of guessing.
FIRST_LOSS, LATER_LOSS = (0.8, 1.3), 1.5


def wide_band(workload: Workload, steps: Sequence[int]) -> Band:
    """The range of an honest training on data that was not at hand.

    The first loss is near that of guessing, ``ln(classes)``, because start weights know nothing:
    0.98 to 1.08 times on generated data, MNIST and Fashion-MNIST, every workload and batch size
    (the middle of each range). Later ones are up to 1.19 times on the same. Both with a margin.

    Args:
        steps: after which a loss was read, rising.
    """
    guessing = math.log(workload.data_set.classes)
    last = steps[-1] if steps else 1
    low = (FIRST_LOSS[0] * guessing, *(0.0,) * (last - 1))
    high = (FIRST_LOSS[1] * guessing, *(LATER_LOSS * guessing,) * (last - 1))
    return Band(Recomputed(low, ()), Recomputed(high, ()))
