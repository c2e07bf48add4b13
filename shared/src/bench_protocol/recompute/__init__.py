"""A session's readings, computed again in NumPy float64 without any framework.

:func:`figures` gives the losses and the movements of the weights that they must show.
docs/protocol.md, section "Recomputation", has all formulas.
"""

from .figures import figures, generated_digest
from .training import Job, Training

__all__ = ["Job", "Training", "figures", "generated_digest"]
