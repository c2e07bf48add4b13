"""What a demo says of the trust levels of its results, and the documents of its folder."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import httpx
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delenv("TRAINMARK_DEMO", raising=False)
    yield importlib.import_module("demo")
    for name in ("demo", "demo_page"):
        sys.modules.pop(name, None)


def test_each_lower_level_is_a_line_with_its_reason(demo: ModuleType) -> None:
    spread = "its block times are uneven: their mean is 2.01 times their median; the limit is 1.5"
    levels = [(3, None), (2, f"level 3: {spread}"), (2, f"level 3: {spread}"), (1, "level 2: late")]
    first, *lower = demo.level_lines(levels)
    assert first.startswith("At trust level 3: 1 of 4 results. ")
    assert lower == [f"  2 at level 2: {spread}", "  1 at level 1: late"]


def test_a_stopped_projection_is_named_at_once(demo: ModuleType) -> None:
    asked: list[str] = []

    def server(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        stopped = {"projection_stopped": "entry 7: no such workload"}
        return httpx.Response(200, json=stopped if request.url.path == "/readyz" else {})

    http = httpx.Client(base_url="http://demo.test", transport=httpx.MockTransport(server))
    with pytest.raises(demo.DemoProblem, match=r"entry 7: no such workload; see .*server\.log"):
        demo._recomputed(http, "0f1e2d3c4b5a6978")
    assert asked == ["/readyz"]


def test_the_agents_page_shows_the_report_of_the_demos_folder(demo: ModuleType) -> None:
    home = Path(demo.environment()["BENCH_HOME"]).relative_to(ROOT)
    command = f"\nBENCH_HOME={home} .venv/bin/bench-agent report\n"
    assert command in (ROOT / "docs" / "agent.md").read_text()
