"""Messages about unknown names, with the nearest known name. Imports no command-line library."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

LONGEST_VALUE = 100


def unknown(
    what: str,
    name: str,
    names: Iterable[str],
    other_words: Mapping[str, str | Sequence[str]] = {},
) -> str:
    """``unknown framework 'pytorch'; did you mean torch? There are: jax, mlx, torch``."""
    listed = list(names)
    other = other_words.get(name.lower(), ())
    words = (other,) if isinstance(other, str) else other
    meant = next((word for word in words if word in listed), None) or nearest(name, listed)
    guess = f"; did you mean {meant}? There are: " if meant else "; choose one of: "
    return f"unknown {what} {quoted(name)}{guess}{', '.join(listed)}"


def nearest(name: str, names: Sequence[str]) -> str | None:
    return next(iter(get_close_matches(name.lower(), names, n=1, cutoff=0.7)), None)


def quoted(text: str) -> str:
    """A value in quotes, without what is beyond its first 100 characters."""
    return repr(text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}...")
