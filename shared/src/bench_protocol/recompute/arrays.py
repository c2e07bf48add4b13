"""Types of the recomputation: arrays, a layer's weights, a layer's passes."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Values = dict[str, Array]
# Takes d loss / d outputs, and whether to compute d loss / d inputs. Returns that (``NOTHING`` if
# skipped), and d loss / d each trained weight by its name.
Backward = Callable[[Array, bool], tuple[Array, Values]]
Passed = tuple[Array, Backward]
NOTHING: Array = np.empty(0)
