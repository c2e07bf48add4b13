"""Page contexts: a frozen dataclass for each page. ``json_href`` is the same answer as JSON."""

from .common import Page
from .compare import ComparePage
from .docs import DocsPage, TypePage
from .guides import DocumentPage, DumpsPage, LogPage, SubmitPage, TrustPage
from .hardware import HardwarePage
from .home import HomePage
from .leaderboard import LeaderboardPage
from .lists import ListPage, ResultListPage
from .machine import MachinePage
from .owner import OwnerPage
from .result import ResultPage
from .studies import PlottedStudyPage, StudyPage
from .workload import WorkloadPage

PAGES: dict[str, type] = {
    "home.html": HomePage,
    "leaderboard.html": LeaderboardPage,
    "workload.html": WorkloadPage,
    "hardware.html": HardwarePage,
    "hardware-list.html": ListPage,
    "machine-list.html": ListPage,
    "result-list.html": ResultListPage,
    "machine.html": MachinePage,
    "owner.html": OwnerPage,
    "result.html": ResultPage,
    "compare.html": ComparePage,
    "frameworks.html": StudyPage,
    "cpu-vs-gpu.html": PlottedStudyPage,
    "batch-size.html": PlottedStudyPage,
    "trends.html": PlottedStudyPage,
    "log.html": LogPage,
    "methodology.html": Page,
    "verdicts.html": Page,
    "document.html": DocumentPage,
    "submit.html": SubmitPage,
    "trust.html": TrustPage,
    "docs.html": DocsPage,
    "type.html": TypePage,
    "dumps.html": DumpsPage,
}
