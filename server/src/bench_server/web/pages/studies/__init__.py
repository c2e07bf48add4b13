"""Pages of the studies: ``/frameworks``, ``/cpu-vs-gpu``, ``/batch-size``, ``/trends``."""

from .batch_size import batch_size_page
from .common import PlottedStudyPage, StudyPage
from .cpu_vs_gpu import cpu_vs_gpu_page
from .frameworks import frameworks_page
from .trends import trends_page

__all__ = [
    "PlottedStudyPage",
    "StudyPage",
    "batch_size_page",
    "cpu_vs_gpu_page",
    "frameworks_page",
    "trends_page",
]
