"""Strict JSON: each document has one meaning, and each value one canonical form.

Python's parser keeps the last of two equal keys, accepts NaN and turns 1e999 into infinity, so two
parsers could read different documents under one signature. This one refuses these.

Most documents arrive in canonical form. A fast parser (orjson) handles them: its value is accepted
if writing it gives the same bytes, because a duplicate key or a number out of range would give
others. All other documents go through the strict parser.
"""

import hashlib
import json
import math
from collections import Counter
from typing import Any

import orjson

from .errors import MalformedJson

MAX_BYTES = 2 * 1024 * 1024


def loads(raw: bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """Read one JSON document.

    Args:
        raw: UTF-8 text, at most ``max_bytes`` long.

    Raises:
        MalformedJson: too long, not UTF-8, not JSON, too deep, a duplicate key, a number that is
            not finite or has too many digits, or half of a surrogate pair.
    """
    if len(raw) > max_bytes:
        raise MalformedJson(
            f"document is {len(raw)} bytes, the limit is {max_bytes}",
            field="body",
            hint=f"send at most {max_bytes} bytes in one document or line",
        )
    try:
        value = orjson.loads(raw)
        if orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == raw:
            return value
    except (ValueError, TypeError):  # TypeError: nested too deeply to be written
        pass
    return _read_with_care(raw)


def _read_with_care(raw: bytes) -> Any:
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
        # A lone surrogate can only come from an escape; writing the value detects it.
        if b"\\ud" in raw or b"\\uD" in raw:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except MalformedJson:
        raise
    except UnicodeError as error:
        raise MalformedJson(f"text is not valid Unicode: {error}", field="body") from None
    except RecursionError:
        raise MalformedJson("nested too deeply to be read", field="body") from None
    except ValueError as error:
        raise MalformedJson(f"not valid JSON: {error}", field="body") from None
    return value


def dumps(value: Any) -> bytes:
    """Write a value in canonical form, which is signed: sorted keys, no spaces, UTF-8."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    ).encode("utf-8")


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, lower-case hex."""
    return hashlib.sha256(dumps(value)).hexdigest()


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        # The key may contain half of a surrogate pair, which cannot be encoded in an answer.
        name = twice[:100].encode("utf-8", "replace").decode()
        raise MalformedJson(f"key {name!r} appears twice in one object", field=name or "body")
    return seen


def _refuse_constant(name: str) -> None:
    raise MalformedJson(f"{name} is not a JSON number", field="body", hint="send null")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise MalformedJson(f"number {text[:40]} is beyond the range of a float", field="body")
    return number
