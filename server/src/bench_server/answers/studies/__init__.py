"""Questions across set-ups: framework against framework, CPU against GPU, batch sizes, versions.

Each reads the aggregates of one hardware and compares only figures with the same workload, batch
size, precision and data, except for the compared axis.
"""

from .batch_size import BatchAnswer, BatchLine, BatchStudy, batch_sizes
from .common import HardwareChoice, devices
from .cpu_vs_gpu import PairAnswer, PairChoice, PairRow, cpu_against_gpu
from .frameworks import FrameworksAnswer, frameworks
from .trends import TrendChoice, TrendsAnswer, trends

__all__ = [
    "BatchAnswer",
    "BatchLine",
    "BatchStudy",
    "FrameworksAnswer",
    "HardwareChoice",
    "PairAnswer",
    "PairChoice",
    "PairRow",
    "TrendChoice",
    "TrendsAnswer",
    "batch_sizes",
    "cpu_against_gpu",
    "devices",
    "frameworks",
    "trends",
]
