"""Strict JSON: each document has one meaning, and each value one canonical form."""

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_protocol.base import strict_json
from bench_protocol.base.errors import MalformedJson

REFUSED = {
    "empty": b"",
    "white space": b"  \n",
    "truncated": b'{"a":1',
    "trailing data": b'{"a":1}{"a":1}',
    "trailing comma": b'{"a":1,}',
    "comment": b'{"a":1}//',
    "single quotes": b"{'a':1}",
    "byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "Latin-1": b'{"a":"\xe9"}',
    "overlong UTF-8": b'"\xc0\xaf"',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "control character": b'"\x01"',
    "NUL byte": b'{"a":1}\x00',
    "duplicate key": b'{"a":1,"a":1}',
    "duplicate key, escaped": b'{"a":1,"\\u0061":2}',
    "duplicate key, nested": b'{"o":[{"x":{"a":1,"b":2,"a":3}}]}',
    "duplicate empty key": b'{"":1,"":2}',
    "duplicate key that is half a pair": b'{"\\ud800":1,"\\ud800":2}',
    "NaN": b"[NaN]",
    "Infinity": b"[Infinity]",
    "-Infinity": b"[-Infinity]",
    "1e999": b'{"a":1e999}',
    "-1e999": b'{"a":-1e999}',
    "many digits before the point": b"[" + b"9" * 400 + b".0]",
    "5,000 digits": b"[" + b"1" * 5_000 + b"]",
    "leading zero": b"[01]",
    "high surrogate": b'"\\ud800"',
    "low surrogate": b'"\\uDC00"',
    "surrogates swapped": b'"\\udc00\\ud800"',
    "surrogate in a key": b'{"\\uD800":1}',
    "100,000 arrays deep": b"[" * 100_000 + b"]" * 100_000,
    "100,000 objects deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep and cut off": b"[" * 100_000,
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED.keys())
def test_refused(raw: bytes) -> None:
    with pytest.raises(MalformedJson) as caught:
        strict_json.loads(raw)
    error = caught.value
    assert error.code == "malformed_json"
    assert error.field
    assert len(error.detail) < 400
    # The answer to the sender has to be writable.
    strict_json.dumps([error.detail, error.field, error.hint])


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":1}', {"a": 1}),
        (b' [1, 2.5,\n"x", null, true] ', [1, 2.5, "x", None, True]),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud800"', "\\ud800"),
        (b"1e-999", 0.0),
        (b"1.7976931348623157e308", 1.7976931348623157e308),
        (b"9007199254740993", 9007199254740993),
        (b'{"a":{"a":1},"b":{"a":1}}', {"a": {"a": 1}, "b": {"a": 1}}),
    ],
)
def test_accepted(raw: bytes, value: Any) -> None:
    assert strict_json.loads(raw) == value


def test_the_size_is_bounded_before_anything_is_read() -> None:
    limit = strict_json.MAX_BYTES
    assert limit == 2 * 1024 * 1024
    assert strict_json.loads(b"1" + b" " * (limit - 1)) == 1
    with pytest.raises(MalformedJson, match=str(limit)):
        strict_json.loads(b"\xff" * (limit + 1))
    with pytest.raises(MalformedJson, match="limit is 3"):
        strict_json.loads(b"1234", max_bytes=3)


def test_a_duplicate_among_many_keys_is_found_in_linear_time() -> None:
    keys = b",".join(b'"%d":0' % number for number in range(150_000))
    started = time.perf_counter()
    with pytest.raises(MalformedJson, match="'twice'"):
        strict_json.loads(b'{%s,"twice":1,"twice":2}' % keys)
    assert time.perf_counter() - started < 5  # quadratic took minutes


def test_the_duplicate_key_is_named_but_not_at_length() -> None:
    name = b"k" * 100_000
    with pytest.raises(MalformedJson) as caught:
        strict_json.loads(b'{"%s":1,"%s":2}' % (name, name))
    assert caught.value.field == "k" * 100


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**53), max_value=2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    raw = strict_json.dumps(value)
    assert strict_json.loads(raw) == value
    assert strict_json.dumps(strict_json.loads(raw)) == raw


@given(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        value = strict_json.loads(raw)
    except MalformedJson:
        return
    assert json.loads(raw) == value


@given(VALUES)
def test_quickly_read_or_with_care_it_is_the_same(value: Any) -> None:
    """repr distinguishes 1 from 1.0 and 0.0 from -0.0, which are equal."""
    raw = strict_json.dumps(value)
    assert repr(strict_json.loads(raw)) == repr(strict_json._read_with_care(raw))


@given(st.lists(st.tuples(st.text("abc", max_size=1), VALUES), max_size=6))
def test_a_key_that_comes_twice_is_found_in_the_form_that_is_signed(
    pairs: list[tuple[str, Any]],
) -> None:
    members = b",".join(
        strict_json.dumps(key) + b":" + strict_json.dumps(value)
        for key, value in sorted(pairs, key=lambda pair: pair[0])
    )
    if len(dict(pairs)) == len(pairs):
        assert strict_json.loads(b"{%s}" % members) == dict(pairs)
    else:
        with pytest.raises(MalformedJson, match="appears twice"):
            strict_json.loads(b"{%s}" % members)


def test_the_canonical_form() -> None:
    value = {"b": [1, 1.0, 0.001, 1e-7, 1e22, None, True], "a": 'é\u2028\n"\x7f', "B": {}}
    assert strict_json.dumps(value) == (
        '{"B":{},"a":"é\u2028\\n\\"\x7f","b":[1,1.0,0.001,1e-07,1e+22,null,true]}'.encode()
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_no_reader_takes_is_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        strict_json.dumps({"loss": number})
