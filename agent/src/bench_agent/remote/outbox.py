"""The outbox: signed results on disk, until a server has answered for each.

``pending/`` holds envelopes to send; ``sent/`` accepted ones, each with the server's receipt;
``refused/`` refused ones, each with the server's reason; ``damaged/`` what was in one of them and
is no signed result. A file is named by run, cell and repeat,
so that each repeat is stored once and a resumed run knows which are done.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench_protocol.base import strict_json
from bench_protocol.base.errors import ProtocolError
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload import statement
from bench_protocol.payload.result import Result
from bench_protocol.signing import envelope

from ..base.errors import HomeProblem
from ..base.home import private_folder, read_json, write_durably
from ..base.terminal import write_error

ANSWER_SUFFIX = ".answer"
STATES = ("pending", "sent", "refused")
State = Literal["sent", "refused"]


@dataclass(frozen=True)
class Entry:
    """An envelope on disk, and the server's answer if there is one."""

    path: Path

    @property
    def raw(self) -> bytes:
        """The bytes, even if another process has moved the file to another state.

        Raises:
            FileNotFoundError: the envelope is in none of the three folders.
        """
        outbox = self.path.parent.parent
        for folder in (self.path.parent, *(outbox / state for state in STATES)):
            with suppress(FileNotFoundError):
                return (folder / self.path.name).read_bytes()
        raise FileNotFoundError(self.path)

    @property
    def run_id(self) -> str:
        return self.path.name.partition("-")[0]

    @property
    def answer(self) -> dict[str, Any] | None:
        with suppress(FileNotFoundError, HomeProblem):
            answer = read_json(self.path.with_suffix(ANSWER_SUFFIX))
            return answer if isinstance(answer, dict) else None
        return None

    def document(self) -> Any:
        """The envelope's payload, to show to the user before it is sent."""
        return strict_json.loads(envelope.read(self.raw).payload)

    def result(self) -> Result:
        """The result inside. The signature is not verified again: it is our own file."""
        return statement.parse_result(envelope.read(self.raw).payload)

    @property
    def fault(self) -> str | None:
        """Why the file is no signed result; None if it is one.

        Raises:
            FileNotFoundError: another process has moved it.
        """
        if not self.path.is_file() and self.path.exists():
            return "it is no file"
        try:
            self.result()
        except ProtocolError as error:
            return error.detail
        except FileNotFoundError:
            raise
        except OSError as error:
            return error.strerror
        return None


class Outbox:
    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, run_id: str, cell: Cell, repeat: int) -> Entry | None:
        """The envelope of this repeat in any state; None if it was not measured."""
        name = file_name(run_id, cell, repeat)
        paths = (self.root / state / name for state in STATES)
        return next((Entry(path) for path in paths if path.exists()), None)

    def put(self, result: Result, raw: bytes) -> Entry:
        """Store a result's envelope, on disk when this returns; else ``HomeProblem``."""
        name = file_name(result.run_id, result.cell, result.repeat)
        path = self.root / "pending" / name
        write_durably(path, raw)
        return Entry(path)

    def pending(self) -> Iterator[Entry]:
        """Pending envelopes, oldest first."""
        return self._entries("pending")

    def sent(self) -> Iterator[Entry]:
        """Accepted envelopes, oldest first."""
        return self._entries("sent")

    def refused(self) -> Iterator[Entry]:
        """Refused envelopes, oldest first."""
        return self._entries("refused")

    def last_run(self) -> list[Entry]:
        """Every envelope of the latest run, in any state."""
        # Key by name: another process may move an envelope while the states are listed.
        entries = {
            entry.path.name: (changed_ns, entry)
            for state in STATES
            for changed_ns, entry in self._dated(state)
        }
        if not entries:
            return []
        _, newest = max(entries.values(), key=lambda dated: dated[0])
        of_run = (entry for _, entry in entries.values() if entry.run_id == newest.run_id)
        return [*self._sound(of_run)]

    def of_cell(self, cell: Cell) -> list[Entry]:
        """The envelopes of a cell in any state, newest first."""
        dated = [pair for state in STATES for pair in self._dated(state, f"*-{cell.digest[:16]}-*")]
        # Key by name: another process may move an envelope while the states are listed.
        entries = {entry.path.name: entry for _, entry in sorted(dated, key=lambda pair: pair[0])}
        return [*self._sound(reversed(entries.values()))]

    def _entries(self, state: str) -> Iterator[Entry]:
        return self._sound(entry for _, entry in self._dated(state))

    def _sound(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The signed results among some files; the others are put aside, and named once."""
        for entry in entries:
            with suppress(FileNotFoundError):  # another process has just moved it
                if (fault := entry.fault) is None:
                    yield entry
                    continue
                aside = private_folder(self.root / "damaged") / entry.path.name
                entry.path.replace(aside)
                write_error(f"{entry.path} is damaged ({fault}); it is in {aside} now")

    def _dated(self, state: str, name: str = "*") -> list[tuple[int, Entry]]:
        """Envelopes with their modification time in nanoseconds, oldest first. ``name``: pattern of
        the file name without its suffix."""
        dated = []
        for path in (self.root / state).glob(f"{name}.json"):
            with suppress(FileNotFoundError):  # another process has just moved it
                dated.append((path.stat().st_mtime_ns, Entry(path)))
        return sorted(dated, key=lambda pair: (pair[0], pair[1].path.name))

    def move(self, entry: Entry, state: State, answer: dict[str, Any]) -> Entry:
        """Move an envelope to ``sent/`` or ``refused/`` with the server's answer."""
        target = private_folder(self.root / state) / entry.path.name
        write_durably(target.with_suffix(ANSWER_SUFFIX), json.dumps(answer, indent=1).encode())
        with suppress(FileNotFoundError):  # another process has moved it; its answer is the same
            entry.path.replace(target)
        return Entry(target)

    def put_back(self, entry: Entry) -> None:
        """Make a sent envelope pending again, without its answer."""
        with suppress(FileNotFoundError):  # another process has moved it
            entry.path.replace(private_folder(self.root / "pending") / entry.path.name)
        entry.path.with_suffix(ANSWER_SUFFIX).unlink(missing_ok=True)

    def mark_withdrawn(self, result_id: str) -> None:
        """Mark a sent result as withdrawn, so that it is never sent again."""
        for entry in self.sent():
            if (answer := entry.answer or {}).get("id") == result_id:
                self.move(entry, "sent", answer | {"withdrawn": True})


def file_name(run_id: str, cell: Cell, repeat: int) -> str:
    return f"{run_id}-{cell.digest[:16]}-{repeat}.json"


def problem_text(problem: dict[str, Any], otherwise: str = "it gives no reason") -> str:
    """The detail of a problem document and its hint; ``otherwise`` without a detail."""
    detail, hint = problem.get("detail"), problem.get("hint")
    words = detail if detail and isinstance(detail, str) else otherwise
    return f"{words} ({hint})" if hint and isinstance(hint, str) else words
