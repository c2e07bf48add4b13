"""Limits of the fields of a result."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.protocol.golden_result import (
    FAILURE,
    KEY_1,
    MEASUREMENT,
    PAYLOAD,
    RESULT,
    Place,
    altered,
)

from bench_protocol.base import strict_json
from bench_protocol.base.errors import InvalidField
from bench_protocol.base.units import LARGEST_INTEGER, UtcTime, plain_text
from bench_protocol.payload import statement
from bench_protocol.payload.readings import MOST_SAMPLES, Energy, Telemetry, thinned
from bench_protocol.payload.result import MOST_BLOCKS, Failed, Measured
from bench_protocol.signing import envelope


def paths_of_integers(value: Any, path: Place = ()) -> list[Place]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [path]
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [place for key, part in items for place in paths_of_integers(part, (*path, key))]


# Smaller limits than 2**53 - 1.
LIMITS = {"repeat": 10_000, "schema_version": 1, "index": 1_023}
# The run's clock alone: blocks and energy have a started_ns too.
IN_ORDER = {("clocks", "started_ns"), ("clocks", "finished_ns")}
PATHS = paths_of_integers(json.loads(PAYLOAD))
# A list that rises: only its last value can be the largest.
RISING, LAST = ("window", "received_ns"), 4


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ".".join(map(str, path[1:])))
def test_every_integer_of_the_golden_result_at_its_limit(path: Place) -> None:
    limit = LIMITS.get(str(path[-1]), LARGEST_INTEGER)
    rises = path[-3:-1] == RISING and path[-1] != LAST
    # The cell's digest is in the subject.
    if not (path[-2:] in IN_ORDER or "cell" in path or rises):
        written = altered(path, limit, PAYLOAD)
        read = json.loads(statement.result_payload(statement.parse_result(written)))
        for step in path:
            read = read[step]
        assert read == limit
    for wrong in (limit + 1, -1, True, 1.5, "1"):
        with pytest.raises(InvalidField) as caught:
            statement.parse_result(altered(path, wrong, PAYLOAD))
        assert str(path[-1]) in caught.value.field


@pytest.mark.parametrize("code", [-(2**31), -11, 0, 1, 2**32 - 1])
def test_exit_codes(code: int) -> None:
    base = statement.result_payload(FAILURE)
    path: Place = ("predicate", "outcome", "exit_code")
    outcome = statement.parse_result(altered(path, code, base)).outcome
    assert isinstance(outcome, Failed)
    assert outcome.exit_code == code
    for wrong in (-(2**31) - 1, 2**32):
        with pytest.raises(InvalidField, match="exit_code"):
            statement.parse_result(altered(path, wrong, base))


def test_long_runs_fit_an_envelope() -> None:
    """The longest block list and the longest telemetry of ten sensors stay below 2 MiB."""
    columns = {f"sensor{n}_percent": (97.3,) * MOST_SAMPLES for n in range(10)}
    at_ns = tuple(3_600_000_000_000 + n * 1_000_000_000 for n in range(MOST_SAMPLES))
    blocks = MEASUREMENT.blocks.model_copy(update={"durations_ns": (1_234_567_890,) * MOST_BLOCKS})
    measured = Measured(measurement=MEASUREMENT.model_copy(update={"blocks": blocks}))
    telemetry = Telemetry(at_ns=at_ns, columns=columns)
    result = RESULT.model_copy(update={"outcome": measured, "telemetry": telemetry})
    raw = envelope.seal(statement.RESULT_PAYLOAD_TYPE, statement.result_payload(result), KEY_1)
    assert len(raw) < strict_json.MAX_BYTES
    assert statement.parse_result(envelope.read(raw).payload) == result


@pytest.mark.parametrize("count", [0, 1, MOST_SAMPLES, MOST_SAMPLES + 1, 3 * MOST_SAMPLES + 7])
def test_telemetry_of_any_length_is_thinned_to_fit(count: int) -> None:
    telemetry = thinned(range(count), {"load_average": [float(n) for n in range(count)]})
    assert len(telemetry.at_ns) <= MOST_SAMPLES
    assert len(telemetry.at_ns) > min(count, MOST_SAMPLES) // 2 - 1
    assert telemetry.columns["load_average"] == tuple(map(float, telemetry.at_ns))
    if count <= MOST_SAMPLES:
        assert telemetry.at_ns == tuple(range(count))


def test_energy_says_why_there_is_none() -> None:
    assert Energy(source="none", reason="no counter").energy_mj is None
    assert Energy(source="nvml", reason="window under ten seconds").energy_mj is None
    with pytest.raises(ValidationError):
        Energy(source="nvml", energy_mj=5)


@given(st.text(), st.integers(1, 200))
def test_any_text_can_be_made_plain(text: str, limit: int) -> None:
    plain = plain_text(text, limit)
    assert len(plain) <= limit
    result = RESULT.model_copy(
        update={"environment": RESULT.environment.model_copy(update={"settings": {"A": plain}})}
    )
    assert statement.parse_result(statement.result_payload(result)) == result


def test_plain_text() -> None:
    assert plain_text("a\r\n\x1b[2Jb\ud800\x9f é") == "a [2Jb?  é"


@given(st.datetimes())
def test_every_moment_of_python_has_a_wire_form(moment: Any) -> None:
    text = f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S.%f}Z"
    assert TypeAdapter(UtcTime).validate_python(text) == text
