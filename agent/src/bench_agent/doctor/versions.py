"""Versions as numbers: enough of PEP 440 to compare releases."""

import re

Version = tuple[int, ...]


def release(text: str) -> Version:
    """The leading numbers of a version: ``2.19.1rc0`` is (2, 19, 1); empty if there are none."""
    match = re.match(r"\s*v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,5})", text)
    return tuple(map(int, match.group(1).split("."))) if match else ()


def at_least(version: str, limit: str) -> bool:
    """Whether a version is the limit or newer. False for an unreadable version."""
    left, right = release(version), release(limit)
    return bool(left) and _padded(left) >= _padded(right)


def _padded(version: Version) -> Version:
    return (*version, 0, 0, 0, 0, 0, 0)[:6]
