"""Questions across set-ups: framework against framework, CPU against GPU, batch sizes, versions.

Each reads standings, picks those of one hardware, and puts only equals side by side: the same
workload, batch size, precision and data unless that is what is compared.
"""

from .batches import BatchAnswer, BatchStudy, batch_sizes
from .between import FrameworksAnswer, frameworks
from .common import HardwareChoice, devices
from .pairs import PairAnswer, PairChoice, cpu_against_gpu
from .versions import TrendChoice, TrendsAnswer, trends

__all__ = [
    "BatchAnswer",
    "BatchStudy",
    "FrameworksAnswer",
    "HardwareChoice",
    "PairAnswer",
    "PairChoice",
    "TrendChoice",
    "TrendsAnswer",
    "batch_sizes",
    "cpu_against_gpu",
    "devices",
    "frameworks",
    "trends",
]
