"""Statements and results: golden files, round trips."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.protocol.golden_result import FAILURE, GOLDEN, KEY_1, MEASUREMENT, PAYLOAD, RESULT

from bench_protocol.base import strict_json
from bench_protocol.base.units import LARGEST_INTEGER
from bench_protocol.payload import statement
from bench_protocol.payload.result import Failed, FailureKind, Result
from bench_protocol.signing import envelope

# -- golden files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "read"), [("result_v1", RESULT), ("failure_v1", FAILURE)])
def test_golden_payloads_byte_for_byte(name: str, read: Result) -> None:
    assert statement.result_payload(read) == (GOLDEN / f"{name}.json").read_bytes()


def test_the_golden_envelope_byte_for_byte() -> None:
    golden = (GOLDEN / "result_v1.envelope.json").read_bytes()
    assert envelope.seal(statement.RESULT_PAYLOAD_TYPE, PAYLOAD, KEY_1) == golden
    opened = envelope.open_envelope(
        envelope.read(golden), statement.RESULT_PAYLOAD_TYPE, lambda _: KEY_1.public_key()
    )
    assert opened == PAYLOAD


def test_the_golden_result_leaves_no_field_empty() -> None:
    """Else the golden file would not notice a changed field."""

    def empty(value: Any, path: str) -> list[str]:
        if value is None or value in ((), [], {}):
            return [path]
        if isinstance(value, dict):
            return [inner for key, part in value.items() for inner in empty(part, f"{path}.{key}")]
        if isinstance(value, list):
            return empty(dict(enumerate(value)), path)
        return []

    allowed = {
        ".machine.gpus.0.compute_capability",
        ".machine.gpus.0.mig",
        ".machine.gpus.0.mig_profile",
        ".machine.gpus.0.ecc",
        ".machine.gpus.0.power_limit_watts",
        ".machine.gpus.0.default_power_limit_watts",
        ".machine.gpus.0.maximum_memory_clock_mhz",
        ".outcome.measurement.energy.reason",
        ".telemetry.columns.gpu_temperature_celsius.0",
        ".outcome.measurement.witness.movements.3",
        ".outcome.measurement.witness.readings.0.movements.3",
        ".outcome.measurement.witness.readings.1.loss",
        # Beside a challenge a result has no nonce of its own.
        ".nonce",
    }
    assert set(empty(RESULT.model_dump(mode="json"), "")) == allowed


KINDS = TypeAdapter(FailureKind).json_schema()["enum"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("measurement", [None, MEASUREMENT], ids=["nothing", "kept"])
def test_every_failure_comes_back(kind: Any, measurement: Any) -> None:
    outcome = Failed(kind=kind, phase="timing", measurement=measurement)
    result = RESULT.model_copy(update={"outcome": outcome})
    read = statement.parse_result(statement.result_payload(result))
    assert read == result
    assert read.measurement == measurement


WHOLE = st.integers(1, LARGEST_INTEGER)


@given(
    st.lists(WHOLE, min_size=1, max_size=20),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.integers(1, 10_000),
    st.dictionaries(
        st.from_regex(r"\A[a-z][a-z0-9_]{0,10}\Z"),
        st.floats(allow_nan=False, allow_infinity=False) | st.text('aé\U0001f600 "\\', max_size=9),
        max_size=3,
    ),
)
def test_what_is_written_is_read_back(
    durations: list[int], loss: float | None, repeat: int, figures: dict[str, Any]
) -> None:
    document = json.loads(PAYLOAD)
    predicate = document["predicate"]
    measurement = predicate["outcome"]["measurement"]
    measurement["blocks"]["durations_ns"] = durations
    measurement["last_loss"] = loss
    predicate["repeat"] = repeat
    predicate["warnings"] = [{"code": "doubt", "figures": figures}]
    result = statement.parse_result(strict_json.dumps(document))
    again = statement.result_payload(result)
    assert statement.parse_result(again) == result
    assert json.loads(again) == document
