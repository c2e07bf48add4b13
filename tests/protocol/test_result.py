"""Statements and results: golden files, versions, round trips."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.protocol.golden_result import (
    FAILURE,
    GOLDEN,
    KEY_1,
    KEY_2,
    MEASUREMENT,
    PAYLOAD,
    PAYLOAD_2,
    RESULT,
    RESULT_2,
    Place,
    altered,
)

from bench_protocol.base import strict_json
from bench_protocol.base.errors import InvalidField
from bench_protocol.base.units import LARGEST_INTEGER
from bench_protocol.payload import statement
from bench_protocol.payload.result import VERSION_2, Failed, FailureKind, Result
from bench_protocol.signing import envelope

TRACE: Place = ("predicate", "outcome", "measurement", "traces", 1)
NEW_MEMBERS: list[Place] = [
    *(("predicate", name) for name in ("asked", "probes", "attestations")),
    *(("predicate", "outcome", "measurement", name) for name in ("witness", "window")),
    *(("predicate", "outcome", "measurement", "blocks", n) for n in ("least_ns", "last_block")),
    (*TRACE, "steps"),
    (*TRACE, "movements"),
    (*TRACE, "precision"),
]
SINGLE = ("asked", "witness", "window", "least_ns", "last_block", "precision")

# -- golden files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "result"), [("result_v1", RESULT), ("failure_v1", FAILURE), ("result_v2", RESULT_2)]
)
def test_golden_payloads_byte_for_byte(name: str, result: Result) -> None:
    golden = (GOLDEN / f"{name}.json").read_bytes()
    assert statement.result_payload(result) == golden
    assert statement.parse_result(golden) == result


@pytest.mark.parametrize(("version", "payload"), [(1, PAYLOAD), (2, PAYLOAD_2)])
def test_golden_envelopes_byte_for_byte(version: int, payload: bytes) -> None:
    golden = (GOLDEN / f"result_v{version}.envelope.json").read_bytes()
    assert envelope.seal(statement.RESULT_PAYLOAD_TYPE, payload, KEY_1) == golden
    opened = envelope.open_envelope(
        envelope.read(golden), statement.RESULT_PAYLOAD_TYPE, lambda _: KEY_1.public_key()
    )
    assert opened == payload


def test_the_golden_results_leave_no_field_empty() -> None:
    """Else the golden file would not notice a changed field."""

    def empty(value: Any, path: str) -> list[str]:
        if value is None or value in ((), [], {}):
            return [path]
        if isinstance(value, dict):
            return [inner for key, part in value.items() for inner in empty(part, f"{path}.{key}")]
        if isinstance(value, list):
            return [
                inner
                for index, part in enumerate(value)
                for inner in empty(part, f"{path}.{index}")
            ]
        return []

    allowed = {
        ".machine.gpus.0.compute_capability",
        ".machine.gpus.0.mig",
        ".machine.gpus.0.mig_profile",
        ".machine.gpus.0.ecc",
        ".machine.gpus.0.power_limit_watts",
        ".machine.gpus.0.default_power_limit_watts",
        ".machine.gpus.0.maximum_memory_clock_mhz",
        ".outcome.measurement.blocks.losses.1",
        ".outcome.measurement.traces.1.losses.1",
        ".outcome.measurement.history.0.duration_ns",
        ".outcome.measurement.energy.reason",
        ".telemetry.columns.gpu_temperature_celsius.0",
    }
    assert set(empty(RESULT.model_dump(mode="json"), "")) == allowed
    not_finite = {
        ".outcome.measurement.traces.2.movements.2",
        ".outcome.measurement.witness.losses.2",
        ".outcome.measurement.witness.movements.3",
    }
    assert set(empty(RESULT_2.model_dump(mode="json"), "")) == allowed | not_finite


# -- versions -------------------------------------------------------------------------------------


def test_a_result_that_does_not_say_its_version_is_of_the_first() -> None:
    read = statement.parse_result(altered(("predicate", "schema_version"), ...))
    assert read.schema_version == 1


def test_version_1_is_written_without_the_members_of_version_2() -> None:
    written = json.loads(PAYLOAD)
    for path in NEW_MEMBERS:
        part = written
        for step in path[:-1]:
            part = part[step]
        assert path[-1] not in part, path


@pytest.mark.parametrize(
    ("path", "empty"), [(path, None if path[-1] in SINGLE else []) for path in NEW_MEMBERS]
)
def test_version_1_has_none_of_the_members_of_version_2(path: Place, empty: Any) -> None:
    value: Any = json.loads(PAYLOAD_2)
    for step in path:
        value = value[2 if step == 1 else step]  # its third trace has them
    for member in (value, empty):
        with pytest.raises(InvalidField, match="schema_version 1 has no") as caught:
            statement.parse_result(altered(path, member))
        assert str(path[-1]) in caught.value.detail


def test_every_new_member_is_listed() -> None:
    listed = {name for _, names in VERSION_2 for name in names}
    # A result with a challenge has no nonce of its own (test_nonces.py).
    assert listed - {"nonce"} == {str(path[-1]) for path in NEW_MEMBERS}


def test_the_statement_is_one_of_in_toto() -> None:
    document = json.loads(PAYLOAD)
    assert list(document) == ["_type", "predicate", "predicateType", "subject"]
    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert document["predicateType"] == "urn:trainmark:training-result:v1"
    assert document["subject"] == [
        {"digest": {"sha256": RESULT.cell.workload_digest}, "name": "workload"},
        {"digest": {"sha256": RESULT.cell.digest}, "name": "cell"},
    ]


# -- round trips ----------------------------------------------------------------------------------

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
    measurement["blocks"] |= {"durations_ns": durations, "losses": [loss] * len(durations)}
    predicate["repeat"] = repeat
    predicate["warnings"] = [{"code": "doubt", "figures": figures}]
    result = statement.parse_result(strict_json.dumps(document))
    again = statement.result_payload(result)
    assert statement.parse_result(again) == result
    assert json.loads(again) == document


def test_the_golden_documents_are_not_touched_by_reading() -> None:
    document = json.loads(PAYLOAD)
    before = copy.deepcopy(document)
    statement.parse_result(strict_json.dumps(document))
    assert document == before
    assert KEY_2 is not KEY_1
