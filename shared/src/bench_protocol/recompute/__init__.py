"""A cell's training, computed again in NumPy float64 without any framework.

:func:`recompute` gives the losses and the movements of the weights that a conformance trace or the
first steps of a timed session must show; :func:`witness_band` gives their range where Dropout's
masks are the framework's own. docs/protocol.md, section "Recomputation", has all formulas.
"""

from ..training.recomputed import Band, Recomputed
from .band import witness_band
from .seeded_jobs import figures, generated_digest
from .training import Job, nonce_job, recompute, timed_job

__all__ = [
    "Band",
    "Job",
    "Recomputed",
    "figures",
    "generated_digest",
    "nonce_job",
    "recompute",
    "timed_job",
    "witness_band",
]
