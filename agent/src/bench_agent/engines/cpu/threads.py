"""OpenMP threads of PyTorch's ``tuned`` on a CPU.

A small step has one thread: others spin while they wait, which gains nothing on an idle machine and
costs most of the speed on a busy one (docs/adr/0028-threads-that-wait.md).
"""

import math
import os

from bench_protocol.catalogue.workloads import Workload

from ...machine import cgroup
from ..common import available_cores

# Between mnist-dense (13 MFLOP) and fashion-mlp (231).
ONE_THREAD_FLOPS = 50e6
CHOICES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def chosen_here() -> bool:
    """Whether the user left the number of threads to the recipe."""
    return not any(name in os.environ for name in CHOICES)


def usable_cores() -> int:
    """The cores of this process, or fewer where its control group grants less processor time."""
    granted = cgroup.quota_cores()
    return min(available_cores(), math.ceil(granted)) if granted else available_cores()


def of_a_step(workload: Workload, batch_size: int) -> int:
    small = workload.training_flops_per_sample * batch_size < ONE_THREAD_FLOPS
    return 1 if small else usable_cores()
