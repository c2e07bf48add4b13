"""Client addresses as limits count them: an IPv4 address, or the /64 network of an IPv6 address."""

import hashlib
import hmac
import ipaddress
import secrets
from functools import lru_cache

from starlette.requests import Request

from ..log.server_keys import Authority

# A key of this process: no address is kept, and the hashes reveal nothing after it has ended.
_HASH_KEY = secrets.token_bytes(32)
# A site has at least a /64 of IPv6 addresses (RFC 6177), so one client can use 2^64 of them.
SITE_BITS = 64


def network(host: str) -> str:
    """The network that limits count a client by; the text itself where it is no address."""
    return _network(host) or host


@lru_cache(maxsize=4096)
def _network(host: str) -> str | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    address = getattr(address, "ipv4_mapped", None) or address
    bits = SITE_BITS if address.version == 6 else address.max_prefixlen
    return str(ipaddress.ip_network((address.packed, bits), strict=False))


def sender(host: str) -> str:
    """The keyed hash of a client's network, for limits that remember it for hours."""
    return hmac.digest(_HASH_KEY, network(host).encode(), "sha256").hex()


def area(host: str, authority: Authority) -> int | None:
    """The area of a network, one of 256, that only this server's own key can compute: the log names
    it and no network. A signature of Ed25519 is deterministic, so its digest is a keyed hash. None
    where the host is no address."""
    if (named := _network(host)) is None:
        return None
    return hashlib.sha256(authority.log.sign(b"trainmark area\n" + named.encode())).digest()[0]


def host_of(request: Request) -> str:
    """The address that a request came from; behind a trusted proxy that of the proxy's client."""
    return request.client.host if request.client else "unknown"
