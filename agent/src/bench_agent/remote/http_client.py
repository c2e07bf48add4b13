"""The one place where an HTTP client is made, from proxies and certificates that a user set."""

import os
import re
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import httpx

from ..base.errors import UsageProblem

# Variables that name proxies, in small letters.
PROXIES = ("all_proxy", "http_proxy", "https_proxy", "no_proxy")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")


@cache
def trusted() -> ssl.SSLContext:
    """The authorities' certificates, read once a process.

    httpx reads them for each client: 20 ms, and 0.8 MiB that Python does not count. A closed client
    is part of a reference cycle, so its memory waits for a garbage collection.

    Raises:
        UsageProblem: the file or folder of certificates cannot be read.
    """
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        named = " or ".join(name for name in CERTIFICATES if os.environ.get(name))
        raise UsageProblem(
            f"the authorities' certificates cannot be read: {words(error)}; "
            f"fix: {f'correct or unset {named}' if named else 'install the package certifi'}"
        ) from None


def open_http(**options: Any) -> httpx.Client:
    """An HTTP client, with the system's proxies and certificates.

    Raises:
        UsageProblem: a variable names a proxy or certificates that cannot be used.
    """
    try:
        return httpx.Client(verify=trusted(), **options)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        every = named_proxies(os.environ)
        wrong = [name for name in every if _is_wrong(name, os.environ[name])] or every
        named = ", ".join(wrong) or "the system's settings"
        raise UsageProblem(
            f"the proxy of {named} cannot be used: {words(error)}; fix: correct or unset it"
        ) from None


def named_proxies(environ: Mapping[str, str]) -> list[str]:
    """The variables that name proxies, or hosts that need none."""
    return sorted(name for name, value in environ.items() if value and name.lower() in PROXIES)


def proxy_of(server: str) -> str:
    """The variables whose proxy leads to a server's address; empty if none does."""
    parts = urlsplit(server)
    of_it = ("all_proxy", f"{parts.scheme}_proxy")
    named = [name for name in named_proxies(os.environ) if name.lower() in of_it]
    return "" if proxy_bypass(parts.hostname or "") else ", ".join(named)


def _is_wrong(name: str, value: str) -> bool:
    """Whether the variable alone makes a client impossible."""
    if name.lower() == "no_proxy":
        hosts = (host.strip() for host in value.split(","))
        chosen: dict[str, Any] = {"mounts": {f"all://*{host}": None for host in hosts if host}}
    else:
        chosen = {"proxy": value if "://" in value else f"http://{value}"}
    try:
        httpx.Client(verify=trusted(), trust_env=False, **chosen).close()
    except (ImportError, ValueError, httpx.InvalidURL):
        return True
    return False


def words(error: Exception) -> str:
    """The error on one line, without the system's error number."""
    if isinstance(error, ImportError):
        return "SOCKS needs the package socksio"
    text = re.sub(r"^\[Errno -?\d+\] ", "", str(error)).partition("\n")[0]
    return text or type(error).__name__
