"""Set-up of a command: the agent's folder, a client, probes, consent."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import typer

from bench_protocol.base.errors import InvalidField
from bench_protocol.base.format import day_and_time

from ..base.errors import HomeProblem, ServerUnreachable
from ..base.home import Home, find_home
from ..base.keys import load_or_create_key
from ..base.messages import Probe
from ..base.terminal import write
from ..output.console import SOFT, complain
from ..remote.client import Client, ServerRefused
from ..remote.connection import token_for
from ..run import interpreters, kept_probes
from ..run.interpreters import Interpreter
from ..run.probe import installed_in, merged, probe_each
from .exits import Exit, stop


def open_home() -> Home:
    """The agent's folder.

    Raises:
        HomeProblem: a file is in its place, it cannot be entered, or others may write in it.
    """
    home = find_home()
    try:
        levels = (home.root, *home.root.parents)
        existing = next(path for path in levels if path.is_symlink() or path.exists())
        if not existing.is_dir():
            raise HomeProblem(f"{existing} is not a folder; choose another one with BENCH_HOME")
        for folder in (home.root, home.outbox, home.outbox / "pending"):
            if folder.exists() and folder.stat().st_mode & 0o022:
                raise HomeProblem(f"{folder} may be written by others: chmod 700 {folder}")
    except OSError as error:
        why = f"{home.root} cannot be used: {error.strerror}"
        raise HomeProblem(f"{why}; choose another folder with BENCH_HOME") from None
    return home


def open_client(server: str | None, home: Home) -> Client:
    """A client for the named server. Without a name the command stops."""
    if not server:
        stop(Exit.WRONG_USAGE, "no server: give --server URL or set BENCH_SERVER")
    token = token_for(server, os.environ, named=True)
    return Client(server, load_or_create_key(home), home, token=token)


def open_reader(server: str, home: Home) -> Client:
    """A client that only reads. It signs nothing, so no key is made."""
    return Client(server, None, home, token=token_for(server, os.environ, named=False))


@contextmanager
def exchange(client: Client) -> Iterator[Client]:
    """Close the client at the end. An error of the server stops the command with one line."""
    try:
        yield client
    except InvalidField as error:
        stop(Exit.WRONG_USAGE, error.detail)
    except ServerUnreachable as error:
        stop(Exit.SERVER_UNREACHABLE, str(error))
    except ServerRefused as error:
        stop(Exit.SOME_FAILED, str(error))
    finally:
        client.close()


def probe_frameworks(
    frameworks: tuple[str, ...] = (), settings: Sequence[str] = ()
) -> dict[str, Probe]:
    """Ask each framework for its version and devices, each in its own process."""
    home = open_home()
    every = usable_interpreters(home)
    answers = probe_each(home.logs, every, frameworks, settings)
    if not settings:
        kept_probes.keep(home, every, answers, datetime.now(UTC))
    return merged(answers, frameworks)


def recall_frameworks(frameworks: tuple[str, ...] = ()) -> dict[str, Probe]:
    """The last answers of the frameworks, and on standard error when they were given. Where one is
    missing, all are asked."""
    home = open_home()
    every = usable_interpreters(home)
    asked, kept = installed_in(every, frameworks), kept_probes.load(home, every)
    if not all(each in kept for each in asked):
        names = ", ".join(dict.fromkeys(name for _, name in asked))
        complain(f"Asking for devices: {names}. This takes some seconds, once.", SOFT)
        return probe_frameworks(frameworks)
    if asked:
        seen = day_and_time(min(kept[each].at for each in asked))
        again = home.command("doctor")
        complain(f"Frameworks and devices as of {seen}. To look again: {again}", SOFT)
    return merged({each: kept[each].probe for each in asked}, frameworks)


def usable_interpreters(home: Home) -> tuple[Interpreter, ...]:
    """The interpreters of this machine. One that cannot be used is named on standard error."""
    every = interpreters.every(home)
    for unusable in (interpreter for interpreter in every if interpreter.problem):
        check = home.command("environments check")
        write(f"left out: {unusable.place}: {unusable.problem}; see {check}", err=True)
    return every


def ask(question: str, yes: bool, view: Callable[[], None] | None = None) -> None:
    """Go on if ``--yes`` was given or the user agrees at a terminal; else stop the command.
    ``view``: shows what the question is about, if the user answers ``v``."""
    if yes:
        return
    if not typer.get_text_stream("stdin").isatty():
        stop(Exit.WRONG_USAGE, f"{question} Pass --yes to agree, or answer at a terminal.")
    choices = "[y/N, v to view the first one]" if view else "[y/N]"
    while True:
        answer = typer.prompt(f"{question} {choices}", default="", show_default=False, err=True)
        if view and answer.strip().lower() == "v":
            view()
        elif answer.strip().lower() in ("y", "yes"):
            return
        else:
            raise typer.Abort
