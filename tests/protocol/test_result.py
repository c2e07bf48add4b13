"""Statements and results: what may be signed, and what is refused by the name of its field."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.protocol.golden_result import (
    FAILURE,
    GOLDEN,
    KEY_1,
    KEY_2,
    KEY_ID_1,
    KEY_ID_2,
    MEASUREMENT,
    RESULT,
)

from bench_protocol import envelope, keys, statement, strict_json
from bench_protocol.catalogue import CATALOGUE
from bench_protocol.errors import (
    BadSignature,
    InvalidField,
    MalformedJson,
    ProtocolError,
    UnacceptableKey,
    UnknownWorkload,
    WrongPayloadType,
)
from bench_protocol.result import (
    MOST_BLOCKS,
    MOST_SAMPLES,
    Energy,
    Failed,
    FailureKind,
    Measured,
    Result,
    Telemetry,
    thinned,
)
from bench_protocol.units import LARGEST_INTEGER, UtcTime, plain_text

PAYLOAD = statement.result_payload(RESULT)
Path = tuple[str | int, ...]


def altered(path: Path, value: Any, base: bytes = PAYLOAD) -> bytes:
    """The golden payload with one value replaced; ``...`` as value removes it."""
    document = json.loads(base)
    part = document
    for step in path[:-1]:
        part = part[step]
    if value is ...:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return json.dumps(document, ensure_ascii=False).encode()


# -- golden files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "result"), [("result", RESULT), ("failure", FAILURE)])
def test_golden_payloads_byte_for_byte(name: str, result: Result) -> None:
    golden = (GOLDEN / f"{name}_v1.json").read_bytes()
    assert statement.result_payload(result) == golden
    assert statement.parse_result(golden) == result


def test_golden_envelope_byte_for_byte() -> None:
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
            return [found for key, part in value.items() for found in empty(part, f"{path}.{key}")]
        if isinstance(value, list):
            return [
                found
                for index, part in enumerate(value)
                for found in empty(part, f"{path}.{index}")
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


# -- refusals, each naming its field --------------------------------------------------------------

M: Path = ("predicate", "outcome", "measurement")
B: Path = (*M, "blocks")
REFUSED: dict[str, tuple[Path, Any, str]] = {
    "unknown field at the top": (("extra",), 1, "extra"),
    "unknown field of the result": (("predicate", "score"), 1.0, "predicate.score"),
    "unknown field of a block": ((*B, "speed"), 1, "speed"),
    "unknown field of the machine": (("predicate", "machine", "hostname"), "x", "hostname"),
    "missing": (("predicate", "clocks"), ..., "predicate.clocks"),
    "missing loss": ((*M, "last_loss"), ..., "last_loss"),
    "null for a number": (("predicate", "repeat"), None, "predicate.repeat"),
    "repeat 0": (("predicate", "repeat"), 0, "predicate.repeat"),
    "repeat 10,001": (("predicate", "repeat"), 10_001, "predicate.repeat"),
    "repeat true": (("predicate", "repeat"), True, "predicate.repeat"),
    "repeat 1.0": (("predicate", "repeat"), 1.0, "predicate.repeat"),
    "repeat as text": (("predicate", "repeat"), "1", "predicate.repeat"),
    "duration negative": ((*B, "durations_ns"), [1, -1, 1], "durations_ns.1"),
    "duration zero": ((*B, "durations_ns"), [0, 1, 1], "durations_ns.0"),
    "duration true": ((*B, "durations_ns"), [True, 1, 1], "durations_ns.0"),
    "duration 1.5": ((*B, "durations_ns"), [1.5, 1, 1], "durations_ns.0"),
    "duration as text": ((*B, "durations_ns"), ["1", 1, 1], "durations_ns.0"),
    "duration 2**53": ((*B, "durations_ns"), [2**53, 1, 1], "durations_ns.0"),
    "duration 2**64": ((*B, "durations_ns"), [2**64, 1, 1], "durations_ns.0"),
    "no block": ((*B, "durations_ns"), [], "durations_ns"),
    "too many blocks": ((*B, "durations_ns"), [1] * (MOST_BLOCKS + 1), "durations_ns"),
    "a loss too few": ((*B, "losses"), [0.5, 0.4], "blocks"),
    "steps zero": ((*B, "steps_per_block"), 0, "steps_per_block"),
    "stop reason": ((*B, "stop_reason"), "tired", "stop_reason"),
    "spread above 1": ((*B, "target_spread"), 1.5, "target_spread"),
    "start-up zero": ((*M, "startup", "import_ns"), 0, "import_ns"),
    "layers": ((*M, "layers"), "custom", "layers"),
    "parameters negative": ((*M, "parameter_count"), -1, "parameter_count"),
    "loss as text": ((*M, "last_loss"), "0.5", "last_loss"),
    "loss true": ((*M, "last_loss"), True, "last_loss"),
    "accuracy above 1": ((*M, "evaluation", "accuracy"), 1.01, "accuracy"),
    "accuracy negative": ((*M, "evaluation", "accuracy"), -0.01, "accuracy"),
    "data digest": ((*M, "data_digest"), "xyz", "data_digest"),
    "placement 1": ((*M, "placement", "matches"), 1, "matches"),
    "energy negative": ((*M, "energy", "energy_mj"), -1, "energy_mj"),
    "energy without a window": ((*M, "energy", "window_ns"), None, "energy"),
    "energy from nowhere": ((*M, "energy", "source"), "none", "energy"),
    "energy source": ((*M, "energy", "source"), "guess", "source"),
    "status": (("predicate", "outcome", "status"), "great", "predicate.outcome"),
    "status of the other kind": (
        ("predicate", "outcome", "status"),
        "failed",
        "predicate.outcome.kind",
    ),
    "schema version 2": (("predicate", "schema_version"), 2, "predicate.schema_version"),
    "schema version true": (("predicate", "schema_version"), True, "predicate.schema_version"),
    "run id": (("predicate", "run_id"), "0" * 31, "predicate.run_id"),
    "seed": (("predicate", "seed"), "g" * 32, "predicate.seed"),
    "precision": (("predicate", "cell", "precision"), "float8", "predicate.cell.precision"),
    "device index": (("predicate", "cell", "device", "index"), -1, "predicate.cell.device.index"),
    "key id": (("predicate", "agent", "key_id"), KEY_ID_1.upper(), "predicate.agent.key_id"),
    "machine hash": (("predicate", "machine", "machine_hash"), "", "machine_hash"),
    "NUL in a text": (("predicate", "machine", "cpu", "brand"), "a\0b", "brand"),
    "escape in a text": (("predicate", "machine", "model"), "\x1b[2J", "model"),
    "line feed in a setting": (
        ("predicate", "environment", "settings", "A"),
        "a\nb",
        "settings.A",
    ),
    "long text": (("predicate", "machine", "cpu", "brand"), "x" * 201, "brand"),
    "empty text": (("predicate", "machine", "cpu", "brand"), "", "brand"),
    "cores zero": (("predicate", "machine", "cpu", "physical_cores"), 0, "physical_cores"),
    "power negative": (
        ("predicate", "machine", "gpus", 1, "power_limit_watts"),
        -1.0,
        "power_limit_watts",
    ),
    "65 GPUs": (
        ("predicate", "machine", "gpus"),
        [json.loads(PAYLOAD)["predicate"]["machine"]["gpus"][0]] * 65,
        "gpus",
    ),
    "65 packages": (
        ("predicate", "environment", "packages"),
        {f"p{i}": "1" for i in range(65)},
        "packages",
    ),
    "clock as number": (("predicate", "clocks", "signed"), 1_700_000_000, "clocks.signed"),
    "30 February": (("predicate", "clocks", "signed"), "2026-02-30T00:00:00.000000Z", "signed"),
    "25 o'clock": (("predicate", "clocks", "signed"), "2026-02-20T25:00:00.000000Z", "signed"),
    "milliseconds": (("predicate", "clocks", "signed"), "2026-02-20T00:00:00.000Z", "signed"),
    "offset": (("predicate", "clocks", "signed"), "2026-02-20T00:00:00.000000+00:00", "signed"),
    "other digits": (
        ("predicate", "clocks", "signed"),
        "２０２６-02-20T00:00:00.000000Z",
        "signed",
    ),
    "started after finished": (
        ("predicate", "clocks", "started_ns"),
        RESULT.clocks.finished_ns,
        "predicate.clocks",
    ),
    "finished after signed": (
        ("predicate", "clocks", "signed_ns"),
        RESULT.clocks.finished_ns - 1,
        "predicate.clocks",
    ),
    "offset negative": (("predicate", "clocks", "started_ns"), -1, "clocks.started_ns"),
    "column too short": (
        ("predicate", "telemetry", "columns", "cpu_utilisation_percent"),
        [1.0],
        "predicate.telemetry",
    ),
    "column too long": (
        ("predicate", "telemetry", "columns", "cpu_utilisation_percent"),
        [1.0, 2.0, 3.0],
        "predicate.telemetry",
    ),
    "sensor without a unit": (
        ("predicate", "telemetry", "columns", "gpu_temperature"),
        [1.0, 2.0],
        "gpu_temperature",
    ),
    "warning code": (("predicate", "warnings", 0, "code"), "Few Blocks", "code"),
    "figure true": (("predicate", "warnings", 0, "figures", "on"), True, "figures.on"),
    "65 warnings": (("predicate", "warnings"), [{"code": "x"}] * 65, "predicate.warnings"),
    "battery above 100": (
        ("predicate", "conditions", "battery_percent"),
        100.5,
        "battery_percent",
    ),
    "workload's subject": (("subject", 0, "digest", "sha256"), "0" * 64, "subject.0"),
    "cell's subject": (("subject", 1, "digest", "sha256"), "0" * 64, "subject.1"),
    "subject's name": (("subject", 1, "name"), "workload", "subject.1"),
    "subject's algorithm": (("subject", 0, "digest", "sha1"), "0" * 40, "subject.0.digest.sha1"),
    "no subject": (("subject",), [], "subject.0"),
    "a third subject": (
        ("subject",),
        [*json.loads(PAYLOAD)["subject"], json.loads(PAYLOAD)["subject"][0]],
        "subject",
    ),
    "statement type": (("_type",), "https://in-toto.io/Statement/v0.1", "_type"),
    "predicate type": (("predicateType",), "https://slsa.dev/provenance/v1", "predicateType"),
    "changed cell": (("predicate", "cell", "batch_size"), 128, "subject.1"),
}


@pytest.mark.parametrize(("path", "value", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_by_the_name_of_its_field(path: Path, value: Any, field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        statement.parse_result(altered(path, value))
    assert caught.value.field.endswith(field)
    assert field in caught.value.detail
    assert len(caught.value.detail) < 1_000


NOT_FINITE = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"]


@pytest.mark.parametrize("number", NOT_FINITE)
def test_no_number_is_other_than_finite(number: str) -> None:
    raw = altered((*M, "last_loss"), "HERE").replace(b'"HERE"', number.encode())
    with pytest.raises(MalformedJson):
        statement.parse_result(raw)


def test_an_unknown_fields_name_is_not_repeated_at_length() -> None:
    with pytest.raises(InvalidField) as caught:
        statement.parse_result(altered(("predicate", "x" * 100_000), 1))
    assert len(caught.value.field) < 200
    assert len(caught.value.detail) < 400


@pytest.mark.parametrize(
    ("field", "value"), [("workload", "mnist-cnn9"), ("workload_digest", "0" * 64)]
)
def test_an_unknown_workload(field: str, value: str) -> None:
    cell = RESULT.cell.model_copy(update={field: value})
    raw = statement.result_payload(RESULT.model_copy(update={"cell": cell}))
    with pytest.raises(UnknownWorkload) as caught:
        statement.parse_result(raw)
    assert caught.value.field == "predicate.cell.workload_digest"


def test_a_name_and_a_digest_of_two_workloads_do_not_make_one() -> None:
    cell = RESULT.cell.model_copy(update={"workload_digest": CATALOGUE[1].digest})
    raw = statement.result_payload(RESULT.model_copy(update={"cell": cell}))
    with pytest.raises(UnknownWorkload):
        statement.parse_result(raw)


def test_the_author_is_the_key_that_signed() -> None:
    statement.require_author(KEY_ID_1, KEY_ID_1)
    with pytest.raises(BadSignature) as caught:
        statement.require_author(KEY_ID_1, KEY_ID_2)
    assert caught.value.field == "predicate.agent.key_id"
    assert KEY_ID_2 in caught.value.detail


# -- limits ---------------------------------------------------------------------------------------


def integer_fields(schema: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Every integer of the model tree: model, field, limits."""
    found = []

    def look(model: str, name: str, part: Any) -> None:
        if isinstance(part, dict):
            if part.get("type") == "integer":
                found.append((model, name, part))
            for key, inner in part.items():
                if key != "properties":
                    look(model, name, inner)
        elif isinstance(part, list):
            for inner in part:
                look(model, name, inner)

    for model, definition in ({"Result": schema} | schema["$defs"]).items():
        for name, part in definition["properties"].items():
            look(model, name, part)
    return found


INTEGERS = integer_fields(Result.model_json_schema())


@pytest.mark.parametrize(
    ("model", "name", "limits"), INTEGERS, ids=[f"{model}.{name}" for model, name, _ in INTEGERS]
)
def test_every_integer_has_limits_that_any_json_reader_keeps(
    model: str, name: str, limits: dict[str, Any]
) -> None:
    if "const" in limits:
        return
    assert limits["maximum"] <= LARGEST_INTEGER
    assert limits["minimum"] >= -LARGEST_INTEGER
    assert limits["minimum"] >= 0 or name == "exit_code"


def test_integers_were_found() -> None:
    assert len(INTEGERS) > 40
    assert LARGEST_INTEGER == 2**53 - 1


def paths_of_integers(value: Any, path: Path = ()) -> list[Path]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [path]
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [found for key, part in items for found in paths_of_integers(part, (*path, key))]


# Smaller limits than 2**53 - 1.
LIMITS = {
    "repeat": 10_000,
    "schema_version": 1,
    "index": 1_023,
}
# The run's clock alone: blocks and energy have a started_ns too.
IN_ORDER = {("clocks", "started_ns"), ("clocks", "finished_ns")}
PATHS = paths_of_integers(json.loads(PAYLOAD))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ".".join(map(str, path[1:])))
def test_every_integer_of_the_golden_result_at_its_limit(path: Path) -> None:
    limit = LIMITS.get(str(path[-1]), LARGEST_INTEGER)
    depends = path[-2:] in IN_ORDER or "cell" in path  # its digest is in the subject
    if not depends:
        read = json.loads(statement.result_payload(statement.parse_result(altered(path, limit))))
        for step in path:
            read = read[step]
        assert read == limit
    for wrong in (limit + 1, -1, True, 1.5, "1"):
        with pytest.raises(InvalidField) as caught:
            statement.parse_result(altered(path, wrong))
        assert str(path[-1]) in caught.value.field


@pytest.mark.parametrize("code", [-(2**31), -11, 0, 1, 2**32 - 1])
def test_exit_codes(code: int) -> None:
    base = statement.result_payload(FAILURE)
    path: Path = ("predicate", "outcome", "exit_code")
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
    blocks = MEASUREMENT.blocks.model_copy(
        update={
            "durations_ns": (1_234_567_890,) * MOST_BLOCKS,
            "losses": (0.12345678,) * MOST_BLOCKS,
        }
    )
    measurement = MEASUREMENT.model_copy(update={"blocks": blocks})
    result = RESULT.model_copy(
        update={
            "outcome": Measured(measurement=measurement),
            "telemetry": Telemetry(at_ns=at_ns, columns=columns),
        }
    )
    payload = statement.result_payload(result)
    raw = envelope.seal(statement.RESULT_PAYLOAD_TYPE, payload, KEY_1)
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


# -- key events -----------------------------------------------------------------------------------

AT = "2026-11-21T03:42:00.000000Z"


def enrolled(key: Any = KEY_1) -> bytes:
    event = statement.enroll_event(key.public_key(), AT, machine_hash="a7" * 32)
    return statement.key_event_payload(event)


def test_golden_key_event() -> None:
    golden = (GOLDEN / "enroll_v1.envelope.json").read_bytes()
    assert envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, enrolled(), KEY_1) == golden


def test_a_key_event_carries_its_key() -> None:
    event, key = statement.parse_key_event(enrolled())
    assert (event.event, event.at, event.machine_hash) == ("enroll", AT, "a7" * 32)
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
        (_with(machine_hash="serial number"), InvalidField, "machine_hash"),
        (lambda: b"[]", InvalidField, ""),
    ],
)
def test_a_bad_key_event_is_refused(
    make: Callable[[], bytes], error: type[ProtocolError], field: str
) -> None:
    with pytest.raises(error) as caught:
        statement.parse_key_event(make())
    assert caught.value.field == field


def test_neither_statement_passes_for_the_other() -> None:
    def find(_: str) -> Ed25519PublicKey:
        return KEY_1.public_key()

    result = envelope.read(envelope.seal(statement.RESULT_PAYLOAD_TYPE, PAYLOAD, KEY_1))
    event = envelope.read(envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, enrolled(), KEY_1))
    with pytest.raises(WrongPayloadType):
        envelope.open_envelope(result, statement.KEY_EVENT_PAYLOAD_TYPE, find)
    with pytest.raises(WrongPayloadType):
        envelope.open_envelope(event, statement.RESULT_PAYLOAD_TYPE, find)
    # A signature over one does not carry over either.
    moved = envelope.Envelope(statement.RESULT_PAYLOAD_TYPE, event.payload, event.signatures)
    with pytest.raises(BadSignature):
        envelope.open_envelope(moved, statement.RESULT_PAYLOAD_TYPE, find)
    with pytest.raises(InvalidField):
        statement.parse_result(event.payload)
    with pytest.raises(InvalidField):
        statement.parse_key_event(result.payload)


def test_the_golden_documents_are_not_touched_by_reading() -> None:
    document = json.loads(PAYLOAD)
    before = copy.deepcopy(document)
    statement.parse_result(strict_json.dumps(document))
    assert document == before
    assert KEY_2 is not KEY_1
