"""Pages of the studies: ``/frameworks``, ``/cpu-vs-gpu``, ``/batch-size``, ``/trends``.

``hardware_in_view``: the hardware that links to the other studies keep.
"""

from .batch_size import BatchSizePage, batch_size_page
from .cpu_vs_gpu import CpuVsGpuPage, cpu_vs_gpu_page
from .frameworks import FrameworksPage, frameworks_page
from .trends import TrendsPage, trends_page

__all__ = [
    "BatchSizePage",
    "CpuVsGpuPage",
    "FrameworksPage",
    "TrendsPage",
    "batch_size_page",
    "cpu_vs_gpu_page",
    "frameworks_page",
    "trends_page",
]
