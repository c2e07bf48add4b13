"""Each library that fails in its own way is called in one module, which catches all of it."""

import re
from pathlib import Path

import pytest

import bench_agent

SOURCES = Path(bench_agent.__file__).parent
# Programs that run in another interpreter, and have Python alone.
ALONE = {"machine/_ask_cuda.py", "run/_ask_interpreter.py"}
# What is called: the pattern of a call, the modules that may, and why there are more than one.
PLACES: dict[str, tuple[str, set[str]]] = {
    "sensors": (r"\bpsutil\.|import psutil", {"machine/counters.py"}),
    "HTTP clients": (
        r"httpx\.(\w*Client|\w*Transport|create_\w+|get|post|put|request|stream)\(|urlopen",
        {"remote/http_client.py"},
    ),
    # doctor's report is cleaned of every name of the home; an interpreter's path may begin with ~.
    "the home": (
        r"platformdirs|expanduser\(|Path\.home\(|getpwuid",
        {"base/home.py", "doctor/scrub.py", "run/interpreters.py"},
    ),
    # Tables and colours need Rich; a report is bytes; a worker's log is no terminal.
    "text": (
        r"typer\.echo|\bprint\(|\.print\(|sys\.std(out|err)\b|get_binary_stream",
        ALONE | {"base/terminal.py", "output/console.py", "cli/report.py"} | {"worker/repeat.py"},
    ),
    "JSON from outside": (r"(?<!strict_)json\.loads?\(|orjson|\.json\(\)", set()),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_library_is_called_in_one_place(name: str) -> None:
    pattern, allowed = PLACES[name]
    sources = {str(path.relative_to(SOURCES)): path.read_text() for path in SOURCES.rglob("*.py")}
    calling = {place for place, text in sources.items() if re.search(pattern, text)}
    assert calling - allowed == set()
    assert allowed - calling == set(), "no longer needed"
