"""Remove private values from a text: those of this machine and user, and all that look like one.

A replaced value leaves a word in angle brackets, such as ``<home>`` or ``<address>``. Paths keep
what names a package: ``<path>/site-packages/tensorflow/python/ops.py``.
"""

import os
import platform
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from .. import engines, machine
from ..base.home import Home
from ..machine.text import IDENTIFYING
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

# Hosts that doctor's hints and the frameworks' messages name.
PUBLIC_HOSTS = (
    "astral.sh", "pypi.org", "python.org", "github.com", "githubusercontent.com", "apple.com",
    "nvidia.com", "tensorflow.org", "keras.io", "pytorch.org", "googleapis.com", "toronto.edu",
    "amazonaws.com", "readthedocs.io", "localhost",
)  # fmt: skip
SYSTEM_FOLDERS = re.compile(
    r"/(?:usr(?!/local)|lib|lib64|bin|sbin|proc|sys|dev|System|Library)(?:/|$)"
)
# The part of a path that names a package of Python or of this project.
PACKAGE = re.compile(
    r"/((?:(?:site|dist)-packages|lib/python3\.[0-9]+|bench_agent|bench_protocol)/.*"
    r"|bin/python[0-9.]*|locks/[a-z0-9-]+\.txt|shared|agent)$"
)
# A word in angle brackets may begin it: a home that was replaced.
START = r"(?:~|<[^<>\n]+>|[A-Z]:(?=\\))?[/\\]"
QUOTED_PATH = re.compile(rf"([\"'])({START}[^\"'\n]*)\1")
# A blank belongs to a path if the next word goes on with it.
PATH = re.compile(
    rf"(?<![\w/<>.:*-]){START}"
    r"(?:<[^<>\n]+>|[^\s\"'`,;:()|<>]|\\\s|[^\S\n](?=[^\s/'\"]+/[^\s'\"]*))+"
)
URL = re.compile(r"\b(?:https?|ftp|socks5h?|ssh|git)://([^\s/:\"'<>]+)[^\s\"'<>]*", re.IGNORECASE)
HOST = re.compile(r"\b(?:[\w-]+\.)+(?:local|lan|internal|corp|intranet)\b(?!\()", re.IGNORECASE)
SENSITIVE_NAME = (
    r"[\w-]{0,40}(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|credential|authorization)"
    r"[\w-]{0,40}"
)


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# Patterns with their replacements, applied in this order.
PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [^-]+-----.*?(?:-----END [^-]+-----|\Z)", re.DOTALL), "<key>"),
    (
        _any_case(
            rf"({SENSITIVE_NAME}[\"']?\s*[=:]\s*)(?:bearer\s+|basic\s+)?(?:\"[^\"\n]*\"|'[^'\n]*'"
            r"|[^\s\"',;]+)"
        ),
        r"\1<secret>",
    ),
    (_any_case(r"\bfile:/[^\s\"'<>]*"), "<path>"),
    (_any_case(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 <secret>"),
    (
        re.compile(r"\b(?:gh[opsu]_|github_pat_|hf_|sk-|xox[a-z]-|glpat-|AKIA|eyJ)[\w.-]{10,}"),
        "<secret>",
    ),
    (_any_case(r"(serial[\w .-]*[\"']?\s*[=:]\s*[\"'<]?)[\w-]{4,}"), r"\1<serial>"),
    (_any_case(r"\b([a-z][a-z0-9+.-]*://)[^\s/@\"']*@"), r"\1"),  # user and password
    (re.compile(r"[^\s@<>\"'=:/]+@[\w-]+\.[\w.-]+"), "<mail>"),
    (_any_case(r"\b(?:GPU|MIG)-[0-9a-f-]{16,}"), "<identifier>"),
    (_any_case(r"\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b"), "<address>"),
    # An address, unless it is loopback or a version after "==".
    (re.compile(r"(?<![\w.])(?<!==)(?!127\.)(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w.])"), "<address>"),
    (
        _any_case(
            r"(?<![\w:.])(?=[0-9a-f:]*::|(?:[0-9a-f]{1,4}:){7})(?=[:]*[0-9a-f])"
            r"(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?:%\w+)?(?![\w:])"
        ),
        "<address>",
    ),
    # A random text: letters of both cases and digits. C++ names begin with _Z.
    (
        re.compile(
            r"(?<![\w/+-])(?!_+Z)(?=[\w+-]*[0-9])(?=[\w+-]*[a-z])(?=[\w+-]*[A-Z])"
            r"[A-Za-z0-9+_-]{32,}={0,2}"
        ),
        "<secret>",
    ),
)


def scrub(text: str, words: Mapping[str, str] = {}) -> str:
    """The text without private values. ``words``: values to replace, found as whole words of any
    case, each with its replacement."""
    for value in sorted(words, key=len, reverse=True):  # a part of another is replaced after it
        pieces = _whole_word(value).split(text)
        text = words[value].join(pieces)
    for pattern, replacement in PATTERNS:
        text = pattern.sub(replacement, text)
    text = HOST.sub("<host>", URL.sub(_url, text))
    text = QUOTED_PATH.sub(lambda found: f"{found[1]}{_path(found[2])}{found[1]}", text)
    text = PATH.sub(lambda found: _path(found[0]), text)
    return IDENTIFYING.sub("<identifier>", text)


def _whole_word(value: str) -> re.Pattern[str]:
    before = r"(?<![^\W_])" if value[0].isalnum() else ""
    after = r"(?![^\W_])" if value[-1].isalnum() else ""
    return _any_case(before + re.escape(value) + after)


def _path(path: str) -> str:
    package = PACKAGE.search(path)
    if package:
        return f"<path>/{package[1]}"
    return path if SYSTEM_FOLDERS.match(path) else "<path>"


def _url(found: re.Match[str]) -> str:
    host = found[1].lower()
    public = any(host == name or host.endswith(f".{name}") for name in PUBLIC_HOSTS)
    return found[0].partition("?")[0] if public or host.startswith("127.") else "<server>"


def private_words(home: Home, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Private values of this machine, each with the word that replaces it."""
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
    every = [engines.engine_named(name) for name in engines.names()]
    packages = (name for engine in every for name in engine.distributions)
    return frozenset((*engines.names(), *packages, *(each.import_name for each in every)))
