"""Which addresses webhooks may reach: https, and none inside the server's own network.

A name is resolved once for each attempt. All of its addresses are checked, and the connection goes
to a checked address, so that a name cannot change its address in between (DNS rebinding).
"""

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

URL_MAX_LENGTH = 400
# Printable ASCII without spaces: an internationalised name is written as xn--...
PRINTABLE = re.compile(r"[!-~]+")
# Addresses from which clouds serve credentials, and which are public by their number.
METADATA = frozenset({IPv4Address("168.63.129.16")})
# Of protocols; the library of some Python versions calls most of it public (RFC 6890).
PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
IPV6_UNICAST = ipaddress.IPv6Network("2000::/3")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
Resolve = Callable[[str, int], Sequence[tuple[Any, ...]]]


class RefusedAddress(ValueError):
    """A webhook may not reach this address; the message says why."""


class Target(NamedTuple):
    """Where a webhook is posted: its host, port, and path with the query."""

    host: str
    port: int
    path: str


class Endpoint(NamedTuple):
    """A checked address: the family of a socket, and what it connects to."""

    family: int
    address: tuple[Any, ...]


def target(url: str) -> Target:
    """The parts of a webhook's address.

    Raises:
        RefusedAddress: it is no https address without user and fragment, of at most 400 characters.
    """
    if len(url) > URL_MAX_LENGTH:
        raise RefusedAddress(f"it has {len(url)} characters, {URL_MAX_LENGTH} are allowed")
    if not PRINTABLE.fullmatch(url):
        raise RefusedAddress("it holds a space or a character outside of ASCII")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 443
    except ValueError as error:
        raise RefusedAddress(str(error)) from None
    if parts.scheme != "https" or not host:
        raise RefusedAddress("it does not begin with https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise RefusedAddress("it holds a user or a password")
    if parts.fragment:
        raise RefusedAddress("it holds a fragment (#), which is never sent")
    path = parts.path or "/"
    return Target(host, port, f"{path}?{parts.query}" if parts.query else path)


def resolve_name(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    """The system's addresses of a name, for TCP."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def endpoints(
    of: Target, private_hosts: frozenset[str] = frozenset(), resolve: Resolve = resolve_name
) -> list[Endpoint]:
    """The addresses of a host, all of them checked.

    Args:
        private_hosts: hosts that may have private addresses, in lower case.

    Raises:
        RefusedAddress: one of them is refused.
        OSError: the name has none.
    """
    found = [Endpoint(answer[0], answer[4]) for answer in resolve(of.host, of.port)]
    if of.host not in private_hosts:
        for endpoint in found:
            if reason := refused(ipaddress.ip_address(endpoint.address[0])):
                raise RefusedAddress(f"{of.host} has the address {endpoint.address[0]}: {reason}")
    return found


def refused(address: IPv4Address | IPv6Address) -> str | None:
    """Why an address is refused; None if it is a public unicast address."""
    if isinstance(address, IPv6Address):
        if address in NAT64:
            return refused(IPv4Address(int(address) & 0xFFFF_FFFF))
        if address.ipv4_mapped or address.sixtofour or address.teredo:
            return "it embeds an IPv4 address"
        if address not in IPV6_UNICAST:
            return "it is not public"
    if address in METADATA:
        return "it serves a cloud's metadata"
    if not address.is_global or address.is_multicast or address in PROTOCOLS:
        return "it is not public"
    return None
