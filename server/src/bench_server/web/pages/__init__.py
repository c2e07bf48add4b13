"""Page contexts: a documented frozen dataclass for each page, filled by one function.

``json_href`` is the address of the JSON twin with the same answer.
"""

from .compare import ComparePage
from .docs import DocsPage
from .guides import DumpsPage, LogPage, MethodologyPage, SubmitPage, TrustPage
from .hardware import HardwarePage
from .leaderboard import LeaderboardPage
from .lists import HardwareListPage, MachineListPage, ResultListPage
from .machine import MachinePage
from .result import ResultPage
from .studies import BatchSizePage, CpuVsGpuPage, FrameworksPage, TrendsPage
from .workload import WorkloadPage

# Each template and its context.
PAGES: dict[str, type] = {
    "leaderboard.html": LeaderboardPage,
    "workload.html": WorkloadPage,
    "hardware.html": HardwarePage,
    "hardware-list.html": HardwareListPage,
    "machine-list.html": MachineListPage,
    "result-list.html": ResultListPage,
    "machine.html": MachinePage,
    "result.html": ResultPage,
    "compare.html": ComparePage,
    "frameworks.html": FrameworksPage,
    "cpu-vs-gpu.html": CpuVsGpuPage,
    "batch-size.html": BatchSizePage,
    "trends.html": TrendsPage,
    "log.html": LogPage,
    "methodology.html": MethodologyPage,
    "submit.html": SubmitPage,
    "trust.html": TrustPage,
    "docs.html": DocsPage,
    "dumps.html": DumpsPage,
}
