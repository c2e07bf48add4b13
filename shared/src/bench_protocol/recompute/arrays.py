"""Types of the recomputation: arrays, a layer's weights, a layer's passes."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Values = dict[str, Array]
# From d loss / d outputs, and whether the first result is needed: d loss / d inputs (no value where
# it is not needed), and d loss / d each trained weight by its name.
Backward = Callable[[Array, bool], tuple[Array, Values]]
Passed = tuple[Array, Backward]
NOTHING: Array = np.empty(0)
