"""What holds after each command, wherever and against whatever it ran."""

import re
from pathlib import Path

from tests.fakes.live import Ran

from bench_agent.base.terminal import CONTROLS
from bench_agent.cli.exits import Exit
from bench_agent.remote.outbox import STATES, Entry

STORED = 3


def sound(words: tuple[str, ...], ended: Ran, folder: Path) -> str:
    """What holds in every environment and against every server; returns all that was printed."""
    said = ended.stdout + ended.stderr
    text = f"{words}: {ended.code}\n{said[-3000:]}"
    assert ended.code in list(Exit), text
    assert not re.search("Traceback|Exception ignored|Error:", said), text
    assert not CONTROLS.search(said), text
    outbox = folder / "home" / "outbox"
    results = [Entry(path) for state in STATES for path in (outbox / state).glob("*.json")]
    assert len(results) >= STORED, text
    assert not [entry.path for entry in results if entry.fault], text
    return said
