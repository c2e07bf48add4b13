"""A pytest plug-in: skipped tests must name the missing part; the end of the run lists them.

The last lines of a run say how many tests were left out for each reason. With ``--complete`` each
of them is a failure.
"""

import platform
import sys
from collections import Counter
from collections.abc import Generator

import pytest

Report = pytest.TestReport | pytest.CollectReport


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--complete", action="store_true", help="a test left out is a failure")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests of what only another system does: no part is missing here."""
    here = f"{sys.platform}-{platform.machine()}"
    elsewhere = [
        item
        for item in items
        if any(not here.startswith(mark.args[0]) for mark in item.iter_markers("only_on"))
    ]
    config.hook.pytest_deselected(items=elsewhere)
    items[:] = [item for item in items if item not in elsewhere]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Report, Report]:
    return _failed_if_complete((yield), item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Report, Report]:
    return _failed_if_complete((yield), collector.config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:  # a worker of pytest-xdist
        return
    reasons = Counter(map(_reason, terminal.stats.get("skipped", ())))
    for reason, count in reasons.items():
        terminal.write_line(f"Left out: {count} test{'s' * (count > 1)}, {reason}")


def _failed_if_complete(report: Report, config: pytest.Config) -> Report:
    if report.skipped and config.option.complete:
        report.longrepr = f"Left out: {_reason(report)}"
        report.outcome = "failed"
    return report


def _reason(report: Report) -> str:
    _, _, reason = report.longrepr  # type: ignore[misc]
    return str(reason).removeprefix("Skipped: ")
