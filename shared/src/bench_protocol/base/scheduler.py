"""Connect to a Dask scheduler; off loopback only with TLS."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

CONNECT_SECONDS = 20


class SchedulerProblem(RuntimeError):
    """A scheduler or its workers cannot be used; the message says why, and what to do."""


def check_address(address: str) -> str:
    """The address of a scheduler that may be used.

    A scheduler and its workers run any code that a client sends, so that beyond this machine both
    sides must show a certificate.

    Raises:
        SchedulerProblem: it is no address of a scheduler, or it has no TLS and is not loopback.
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("tcp", "tls") and bool(parts.hostname and parts.port)
    except ValueError:
        usable = False
    if not usable:
        raise SchedulerProblem(
            f"{address!r} is not the address of a scheduler; write tls://HOST:PORT"
        )
    if parts.scheme == "tcp" and not _is_loopback(parts.hostname or ""):
        raise SchedulerProblem(
            f"{address} has no TLS. Anyone who reaches it can run code on every worker. Start the "
            "scheduler with --tls-ca-file, --tls-cert and --tls-key, then write tls://"
        )
    return address


def connect(address: str, extra: str) -> Any:
    """A ``distributed.Client``. Certificates are those of Dask's configuration
    (``distributed.comm.tls``).

    Args:
        extra: what to install where Dask is missing, as in ``./server[cluster]``, in a checkout.

    Raises:
        SchedulerProblem: the extra is not installed, certificates are missing, or the scheduler
            does not answer.
    """
    try:
        import dask
        from distributed import Client
        from distributed.security import Security
    except ImportError as error:
        raise SchedulerProblem(
            f"--scheduler needs Dask distributed; in a checkout: pip install ./shared '{extra}'"
        ) from error
    security = None
    if check_address(address).startswith("tls://"):
        needed = {"ca-file": "tls.ca-file", "client.cert": "tls.client.cert"}
        missing = [
            name for name in needed.values() if not dask.config.get(f"distributed.comm.{name}", "")
        ]
        if missing:
            raise SchedulerProblem(
                f"no certificate for {address}: set distributed.comm.{missing[0]} in Dask's "
                "configuration, or DASK_DISTRIBUTED__COMM__"
                f"{missing[0].upper().replace('.', '__').replace('-', '_')}"
            )
        security = Security(require_encryption=True)
    try:
        return Client(address, security=security, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        words = str(error).splitlines()[0]
        raise SchedulerProblem(f"the scheduler {address} does not answer: {words}") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
