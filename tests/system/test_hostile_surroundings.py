"""Six commands in each of some hostile environments and against each of some hostile servers: each
ends in time with a documented exit code and a sentence, and no result is lost.

Processes are forked (:mod:`tests.evidence.hostile.agent`); what only a new interpreter reads is
tried with programs that start as a user starts them.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.evidence.hostile.agent import ends
from tests.evidence.hostile.environments import ENVIRONMENTS, NEUTRAL, NO_FOLDER, NO_NET
from tests.evidence.hostile.judge import STORED, sound
from tests.evidence.hostile.servers import SERVERS, serving
from tests.fakes.outboxes import put_new

from bench_agent.base.home import Home
from bench_agent.cli.exits import Exit

SMALL = ("run", "--preset", "smoke", "--workload", "mnist-cnn", "--recipe", "naive", "--yes")
LOCAL = [("devices",), ("doctor",), ("plan", "--preset", "smoke"), ("status",)]
NOBODY = ("--server", "http://127.0.0.1:9")
SENDING = [(*SMALL, *NOBODY), ("submit", "--yes", *NOBODY)]
RESULT = "/results/0123456789abcdef"
ASKING = [
    *(SMALL, ("submit", "--yes"), ("enroll",), ("results", "list")),
    *(("results", "hide", "0" * 16), ("verify", RESULT)),
]
pytestmark = pytest.mark.only_on("linux")
# The form of most days takes the first of each kind; the long one takes all.
OFTEN = 3


def every(table: Iterable[str], often: Iterable[str]) -> list[Any]:
    """Names as parameters: those of ``often``, and the others, which are long."""
    long = pytest.mark.long
    return [n if n in often else pytest.param(n, marks=long) for n in table]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent's folder with results, where another user can get to it."""
    folder = tmp_path_factory.mktemp("agent")
    put_new(Home(folder / "home"), STORED)
    return folder


@pytest.fixture
def folder(template: Path) -> Iterator[Path]:
    with TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        made = Path(place) / "agent"
        shutil.copytree(template, made)
        (made / "loop").symlink_to("loop")
        yield made


OFTEN_IN = {name for kind in (NO_NET, NO_FOLDER, NEUTRAL) for name in [*kind][::OFTEN]}


@pytest.mark.parametrize("name", every(ENVIRONMENTS, OFTEN_IN))
def test_six_commands_in_a_hostile_environment(name: str, folder: Path) -> None:
    given, deeds, wrong = ENVIRONMENTS[name]
    variables = {n: v if v != "LOOP" else str(folder / "loop") for n, v in given.items()}
    for words in (*LOCAL, *SENDING):
        ended = ends(words, folder, variables, *deeds)
        said = sound(words, ended, folder)
        sends, text = words in SENDING, f"{words}: {ended.code}\n{said}"
        if name in NO_NET:
            assert ended.code == (Exit.WRONG_USAGE if sends else Exit.DONE), text
            assert bool(re.search(wrong, said)) == (sends or words == ("doctor",)), text
        elif name in NO_FOLDER:
            assert ended.code == Exit.WRONG_USAGE or words == ("doctor",), text
            assert re.search(f"{wrong}|cannot be written", said), text
        elif name in NEUTRAL:
            assert ended.code == (Exit.SERVER_UNREACHABLE if sends else Exit.DONE), text
        else:
            assert sends or bool(wrong) <= bool(re.search(wrong, said)), text
            assert ended.code == Exit.DONE or said, text


# Every third server, as a stranger and as a log by turns.
@pytest.mark.parametrize(
    ("name", "met"),
    [
        pytest.param(
            name, met, marks=() if place % (2 * OFTEN) == met * OFTEN else pytest.mark.long
        )
        for place, name in enumerate(SERVERS)
        for met in (False, True)
    ],
)
def test_six_commands_against_a_hostile_server(name: str, met: bool, folder: Path) -> None:
    """``met``: its log is one, and all else is hostile."""
    with serving(name, met) as address:
        for command in ASKING:
            words = ("verify", address + RESULT) if RESULT in command else ()
            words = words or (*command, "--server", address)
            ended = ends(words, folder, {})
            said = sound(words, ended, folder)
            assert ended.code in (Exit.SERVER_UNREACHABLE, Exit.SOME_FAILED), (words, said)
            assert address in said or "NOT VALID" in said, (words, said)
            assert "pwned" not in said


# What only a new interpreter reads: its streams, its encoding, its warnings.
STARTED: dict[str, tuple[dict[str, str], str]] = {
    "POSIX": ({"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, ""),
    "warnings are errors": ({"PYTHONWARNINGS": "error", "PYTHONDONTWRITEBYTECODE": "1"}, ""),
    "developer": ({"PYTHONDEVMODE": "1", "PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "0"}, ""),
    "full": ({}, ">/dev/full"),
    "closed": ({}, "<&- >&- 2>&-"),
    "unread": ({}, "| true"),
}


@pytest.mark.parametrize("name", STARTED)
def test_a_command_that_is_started_as_by_a_user(name: str, folder: Path) -> None:
    variables, streams = STARTED[name]
    agent = f"{sys.executable} -c 'from bench_agent.cli.main import main; main()' status"
    environ = {"PATH": os.environ["PATH"], "BENCH_HOME": str(folder / "home"), **variables}
    done = subprocess.run(["sh", "-c", f"{agent} {streams}"], env=environ, capture_output=True)
    assert (done.returncode, done.stderr) == (
        (1, b"standard output is not complete: No space left on device\n")
        if name == "full"
        else (0, b"")
    )
