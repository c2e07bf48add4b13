"""After which steps the timed session gives its loss: as many as about ten seconds recompute.

A table beside the catalogue, which the agent reads without NumPy.
"""

from ..catalogue.layers import Dropout
from ..catalogue.workloads import Workload

# Steps whose loss is read, most informative first; the last one's weights give the movements. The
# steps between two of them are trained in one call, which is how blocks are trained.
READINGS: tuple[tuple[int, ...], ...] = (
    (1, 24, 64),
    (1, 8, 24),
    (1, 4, 8),
    (1, 2, 4),
    (1, 2, 3),
    (1, 2),
    (1,),
)
# Training samples that one core recomputes in about ten seconds, all draws of masks together.
# Processor seconds measured at the default batch, on a loaded x86-64 core with AVX-512: mnist-cnn
# 2.8, fashion-cnn 10.0, fashion-mlp 3.2, fashion-convnet 5.3, fashion-lstm 3.5, mnist-dense 0.1;
# two steps of cifar100-vgg16 12.5 and of resnet50-transfer 12.6, three 27.3 and 23.1. Other
# workloads are counted by FLOPs.
RECOMPUTED_SAMPLES: dict[str, int] = {
    "mnist-cnn": 8_192,
    "fashion-cnn": 9_216,
    "cifar100-vgg16": 256,
    "fashion-mlp": 160_000,
    "fashion-convnet": 8_192,
    "fashion-lstm": 8_192,
    "mnist-dense": 131_072,
    "resnet50-transfer": 64,
}
FLOPS = 1e11
# Read at least three steps at the default batch and below, although that takes longer (ADR 0024).
THREE_STEPS = ("cifar100-vgg16", "resnet50-transfer")
# A larger batch costs minutes for one result.
MOST_TIMES = 8
# Dropout's masks are drawn by the framework: the range of a loss comes from this many trainings
# with other masks (bench_protocol.recompute.witness_band). Where even one is long, from one.
MASK_DRAWS = 6
ONE_DRAW = ("cifar100-vgg16",)


def witness_steps(workload: Workload, batch_size: int) -> tuple[int, ...]:
    """Steps of the first epoch, counted from 1, after which the loss is read.

    The last one's batches and those before it are at most what ten seconds recompute, save for
    ``THREE_STEPS``, and lie within the first epoch, because later orders are the recipe's own. The
    first step is always read, also where recomputing it takes longer (:func:`is_quick`).
    """
    steps = _recomputed_steps(workload, batch_size)
    if workload.name in THREE_STEPS and batch_size <= workload.batch_size:
        steps = max(3, steps)
    steps = min(steps, workload.steps_per_epoch(batch_size))
    return next((reading for reading in READINGS if reading[-1] <= steps), (1,))


def is_quick(workload: Workload, batch_size: int) -> bool:
    """Whether the witness is recomputed in about ten seconds."""
    return _recomputed_steps(workload, batch_size) >= 1


def is_affordable(workload: Workload, batch_size: int) -> bool:
    """Whether a server recomputes the witness: its first step takes up to ``MOST_TIMES`` as long as
    a quick one."""
    return batch_size * mask_draws(workload) <= MOST_TIMES * _recomputed_samples(workload)


def _recomputed_samples(workload: Workload) -> int:
    """Samples that ten seconds recompute."""
    by_flops = int(FLOPS // max(1, workload.training_flops_per_sample))
    return RECOMPUTED_SAMPLES.get(workload.name, by_flops)


def _recomputed_steps(workload: Workload, batch_size: int) -> int:
    """Steps that ten seconds recompute."""
    return _recomputed_samples(workload) // (mask_draws(workload) * batch_size)


def mask_draws(workload: Workload) -> int:
    """Trainings that the range of a witness is made of: one without Dropout."""
    drawn = any(isinstance(layer, Dropout) for layer in workload.layers)
    return MASK_DRAWS if drawn and workload.name not in ONE_DRAW else 1
