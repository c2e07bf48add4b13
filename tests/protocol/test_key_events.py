"""Key events: parsing, and refused forms."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.protocol.golden_result import GOLDEN, KEY_1, KEY_ID_1

from bench_protocol.base import strict_json
from bench_protocol.base.errors import (
    InvalidField,
    ProtocolError,
    UnacceptableKey,
)
from bench_protocol.payload import acts, statement
from bench_protocol.signing import envelope, keys

AT = "2026-11-21T03:42:00.000000Z"


def enrolled(key: Any = KEY_1) -> bytes:
    return statement.key_event_payload(statement.enroll_event(key.public_key(), AT))


def test_golden_key_event() -> None:
    golden = (GOLDEN / "enroll_v1.envelope.json").read_bytes()
    assert envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, enrolled(), KEY_1) == golden


@pytest.mark.parametrize("event", [None, "destroy", ["enroll"]])
def test_a_key_event_says_which_it_is(event: Any) -> None:
    """A rotation without its kind was once read as an enrollment."""
    payload = json.loads(enrolled())
    assert acts.event_kind(strict_json.dumps(payload)) == "enroll"
    payload.pop("event")
    if event is not None:
        payload["event"] = event
    for read in (acts.event_kind, statement.parse_key_event):
        with pytest.raises(InvalidField) as refused:
            read(strict_json.dumps(payload))
        assert refused.value.field == "event"


@pytest.mark.parametrize("model", [statement.KeyEvent, acts.Rotation, acts.Revocation])
def test_no_key_event_leaves_its_kind_out(model: Any) -> None:
    assert "event" in model.model_json_schema()["required"]


def test_a_key_event_carries_its_key() -> None:
    event, key = statement.parse_key_event(enrolled())
    assert (event.event, event.at) == ("enroll", AT)
    assert keys.key_id(key) == KEY_ID_1


def _with(**fields: Any) -> Callable[[], bytes]:
    return lambda: strict_json.dumps(json.loads(enrolled()) | fields)


SMALL = "MCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


@pytest.mark.parametrize(
    ("make", "error", "field"),
    [
        (_with(event="revoke"), InvalidField, "event"),
        (_with(public_key="***"), InvalidField, "public_key"),
        (_with(public_key="é"), InvalidField, "public_key"),
        (_with(public_key=""), UnacceptableKey, "public_key"),
        (_with(public_key=SMALL), UnacceptableKey, "public_key"),
        (_with(public_key="A" * 204), InvalidField, "public_key"),
        (_with(at="yesterday"), InvalidField, "at"),
        (_with(display_name="me"), InvalidField, "display_name"),
        (lambda: b"[]", InvalidField, "body"),
    ],
)
def test_a_bad_key_event_is_refused(
    make: Callable[[], bytes], error: type[ProtocolError], field: str
) -> None:
    with pytest.raises(error) as caught:
        statement.parse_key_event(make())
    assert caught.value.field == field
