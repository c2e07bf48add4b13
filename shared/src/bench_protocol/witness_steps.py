"""After how many steps the timed session's loss is read, by workload.

The server computes these steps again in float64, so there are few of them where a step is large.
"""

from .workloads import Workload

# One step alone, then the others up to the second and up to the third in one call each.
MANY_STEPS = (1, 24, 64)
FEW_STEPS = (1, 3)
WITNESS_STEPS = {"cifar100-vgg16": FEW_STEPS, "resnet50-transfer": FEW_STEPS}


def witness_steps(workload: Workload, batch_size: int) -> tuple[int, ...]:
    """Steps after which the loss is read, rising, the first of them 1.

    All lie in the first epoch, whose order is the job's; the recipe chooses the later ones.
    """
    last = workload.steps_per_epoch(batch_size)
    wanted = WITNESS_STEPS.get(workload.name, MANY_STEPS)
    return tuple(sorted({min(step, last) for step in wanted}))
