"""The private values of this machine and user, so that a bundle can leave them out."""

import os
import platform
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from .. import engines, machine
from ..base.home import Home
from ..worker.environment import CHANGES_SPEED

SHORTEST_NAME, SHORTEST_VALUE = 3, 8
# Names that name nobody, and words that a bundle needs.
COMMON = frozenset(
    {
        *("root", "user", "admin", "administrator", "runner", "ubuntu", "debian", "fedora"),
        *("build", "builder", "docker", "container", "localhost", "localdomain", "local", "host"),
        *("server", "mac", "macbook", "imac", "linux", "darwin", "windows", "home", "gpu", "cpu"),
        *("cuda", "metal", "test", "tests", "bench", "agent", "trainmark", "python", "name"),
        *("none", "true", "false", "default"),
    }
)
# Variables whose values are the same on many machines.
HARMLESS = re.compile(
    r"LANG|LC_\w+|TERM|COLORTERM|SHELL|TZ|PATH|EDITOR|PAGER|SHLVL|_|PWD|OLDPWD|HOME|TMPDIR"
    r"|PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE|HASHSEED|UTF8|IOENCODING)|PYTEST_\w+"
)
SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|_KEY$|^KEY|AUTH|PROXY", re.IGNORECASE)


def private_words(home: Home, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Private values of this machine, each with the word that replaces it.

    Args:
        home: the agent's folder.
    """
    words: dict[str, str] = {}
    for value, word in _found(home, environ):
        usual = value.lower() in COMMON or value.lower() in _vocabulary()
        if len(value) >= SHORTEST_NAME and not usual:
            words.setdefault(value, word)
    return words


def _found(home: Home, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield str(home.root), "<agent's folder>"
    for folder in _homes(environ):
        yield folder, "<home>"
        yield folder.rpartition("/")[2], "<user>"
    for name in _users(environ):
        yield name, "<user>"
    for host in _hosts(environ):
        yield host, "<host>"
        yield host.partition(".")[0], "<host>"
    for identifier in machine.identifiers():
        for part in (identifier, *identifier.split("-")):
            if len(part) >= SHORTEST_VALUE:
                yield part, "<identifier>"
    for variable, value in environ.items():
        yield from _of_variable(variable, value)


def _homes(environ: Mapping[str, str]) -> set[str]:
    homes = {environ.get("HOME", ""), os.path.expanduser("~")}  # noqa: PTH111
    with suppress(ImportError, KeyError):
        import pwd

        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    whole = {home.rstrip("/") for home in homes} | {
        os.path.realpath(home) for home in homes if home
    }
    return {home for home in whole if len(home) > 1}


def _users(environ: Mapping[str, str]) -> set[str]:
    users = {environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER", "USERNAME")}
    with suppress(ImportError, KeyError):
        import pwd

        entry = pwd.getpwuid(os.getuid())
        full_name = entry.pw_gecos.partition(",")[0]
        users |= {entry.pw_name, full_name, *full_name.split()}
    return users


def _hosts(environ: Mapping[str, str]) -> set[str]:
    hosts = {platform.node(), environ.get("HOSTNAME", ""), environ.get("HOST", "")}
    with suppress(OSError):
        hosts.add(socket.gethostname())
    return {host.rstrip(".") for host in hosts}


def _of_variable(variable: str, value: str) -> Iterator[tuple[str, str]]:
    """A variable's value, and the parts of an address in it."""
    secret = SECRET.search(variable)
    if not secret and (HARMLESS.fullmatch(variable) or CHANGES_SPEED.fullmatch(variable)):
        return
    word = f"<{variable}>"
    if secret or len(value) >= SHORTEST_VALUE:
        yield value, word
    with suppress(ValueError):
        url = urlsplit(value)
        for part in (url.username, url.password, url.hostname) if "://" in value else ():
            if part:
                yield part, word
                yield unquote(part), word


def _vocabulary() -> frozenset[str]:
    """Words that a bundle must keep."""
    every = [engines.engine_named(name) for name in engines.names()]
    packages = (name for engine in every for name in engine.distributions)
    return frozenset((*engines.names(), *packages, *(each.import_name for each in every)))
