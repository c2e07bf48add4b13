"""Results that are refused, each with the name of the field."""

import json
from typing import Any

import pytest
from tests.protocol.golden_result import KEY_ID_1, KEY_ID_2, PAYLOAD, RESULT, Place, altered

from bench_protocol.base.errors import BadSignature, InvalidField, UnknownWorkload
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.payload import statement
from bench_protocol.payload.result import MOST_BLOCKS

DOCUMENT = json.loads(PAYLOAD)
SUBJECT = DOCUMENT["subject"]
GPU = DOCUMENT["predicate"]["machine"]["gpus"][0]
FINISHED_NS = RESULT.clocks.finished_ns
CLOCKS: Place = ("predicate", "clocks")
MACHINE: Place = ("predicate", "machine")
ENVIRONMENT: Place = ("predicate", "environment")
COLUMNS: Place = ("predicate", "telemetry", "columns")
STATUS: Place = ("predicate", "outcome", "status")
BUSY: Place = ("predicate", "conditions", "cpu_utilisation_percent")
M: Place = ("predicate", "outcome", "measurement")
B: Place = (*M, "blocks")
W: Place = (*M, "witness")
R: Place = (*W, "readings", 0)
READING = DOCUMENT["predicate"]["outcome"]["measurement"]["witness"]["readings"][0]
REFUSED: dict[str, tuple[Place, Any, str]] = {
    "unknown field at the top": (("extra",), 1, "extra"),
    "unknown field of the result": (("predicate", "score"), 1.0, "predicate.score"),
    "unknown field of the machine": (("predicate", "machine", "hostname"), "x", "hostname"),
    "missing": (("predicate", "clocks"), ..., "predicate.clocks"),
    "missing loss": ((*M, "last_loss"), ..., "last_loss"),
    "repeat 0": (("predicate", "repeat"), 0, "predicate.repeat"),
    "duration zero": ((*B, "durations_ns"), [0, 1, 1], "durations_ns.0"),
    "no block": ((*B, "durations_ns"), [], "durations_ns"),
    "too many blocks": ((*B, "durations_ns"), [1] * (MOST_BLOCKS + 1), "durations_ns"),
    "stop reason": ((*B, "stop_reason"), "tired", "stop_reason"),
    "layers": ((*M, "layers"), "custom", "layers"),
    "loss as text": ((*M, "last_loss"), "0.5", "last_loss"),
    "accuracy above 1": ((*M, "evaluation", "accuracy"), 1.01, "accuracy"),
    "data digest": ((*M, "data_digest"), "xyz", "data_digest"),
    "energy without a window": ((*M, "energy", "window_ns"), None, "energy"),
    "energy from nowhere": ((*M, "energy", "source"), "none", "energy"),
    "energy source": ((*M, "energy", "source"), "guess", "source"),
    "status": (STATUS, "great", "predicate.outcome"),
    "status of the other kind": (STATUS, "failed", "predicate.outcome.kind"),
    "schema version 2": (("predicate", "schema_version"), 2, "predicate.schema_version"),
    "no schema version": (("predicate", "schema_version"), ..., "predicate.schema_version"),
    "run id": (("predicate", "run_id"), "0" * 31, "predicate.run_id"),
    "seed": (("predicate", "seed"), "g" * 32, "predicate.seed"),
    "precision": (("predicate", "cell", "precision"), "float8", "predicate.cell.precision"),
    "key id": (("predicate", "agent", "key_id"), KEY_ID_1.upper(), "predicate.agent.key_id"),
    "machine hash": (("predicate", "machine", "machine_hash"), "", "machine_hash"),
    "NUL in a text": (("predicate", "machine", "cpu", "brand"), "a\0b", "brand"),
    "escape in a text": (("predicate", "machine", "model"), "\x1b[2J", "model"),
    "line feed in a setting": ((*ENVIRONMENT, "settings", "A"), "a\nb", "settings.A"),
    "empty text": (("predicate", "machine", "cpu", "brand"), "", "brand"),
    "power negative": ((*MACHINE, "gpus", 1, "power_limit_watts"), -1.0, "power_limit_watts"),
    "65 GPUs": ((*MACHINE, "gpus"), [GPU] * 65, "gpus"),
    "65 packages": ((*ENVIRONMENT, "packages"), {f"p{i}": "1" for i in range(65)}, "packages"),
    "clock as number": (("predicate", "clocks", "signed"), 1_700_000_000, "clocks.signed"),
    "30 February": (("predicate", "clocks", "signed"), "2026-02-30T00:00:00.000000Z", "signed"),
    "25 o'clock": (("predicate", "clocks", "signed"), "2026-02-20T25:00:00.000000Z", "signed"),
    "milliseconds": (("predicate", "clocks", "signed"), "2026-02-20T00:00:00.000Z", "signed"),
    "offset": (("predicate", "clocks", "signed"), "2026-02-20T00:00:00.000000+00:00", "signed"),
    "other digits": ((*CLOCKS, "signed"), "２０２６-02-20T00:00:00.000000Z", "signed"),
    "finished after signed": ((*CLOCKS, "signed_ns"), FINISHED_NS - 1, "predicate.clocks"),
    "column too short": ((*COLUMNS, "cpu_utilisation_percent"), [1.0], "predicate.telemetry"),
    "sensor without a unit": ((*COLUMNS, "gpu_temperature"), [1.0, 2.0], "gpu_temperature"),
    "warning code": (("predicate", "warnings", 0, "code"), "Few Blocks", "code"),
    "figure true": (("predicate", "warnings", 0, "figures", "on"), True, "figures.on"),
    "65 warnings": (("predicate", "warnings"), [{"code": "x"}] * 65, "predicate.warnings"),
    "more than all of the processor": (BUSY, 100.5, "cpu_utilisation_percent"),
    "workload's subject": (("subject", 0, "digest", "sha256"), "0" * 64, "subject.0"),
    "cell's subject": (("subject", 1, "digest", "sha256"), "0" * 64, "subject.1"),
    "subject's name": (("subject", 1, "name"), "workload", "subject.1"),
    "subject's algorithm": (("subject", 0, "digest", "sha1"), "0" * 40, "subject.0.digest.sha1"),
    "no subject": (("subject",), [], "subject.0"),
    "a third subject": (("subject",), [*SUBJECT, SUBJECT[0]], "subject"),
    "statement type": (("_type",), "https://in-toto.io/Statement/v0.1", "_type"),
    "predicate type": (("predicateType",), "https://slsa.dev/provenance/v1", "predicateType"),
    "changed cell": (("predicate", "cell", "batch_size"), 128, "subject.1"),
    "a reading without a call": ((*R, "durations_ns"), [], "durations_ns"),
    "513 calls": ((*R, "durations_ns"), [1] * 513, "durations_ns"),
    "a call of no time": ((*R, "durations_ns"), [1, 0], "durations_ns.1"),
    "a reading without its loss": ((*R, "loss"), ..., "loss"),
    "9 readings": ((*W, "readings"), [READING] * 9, "readings"),
    "no start loss": ((*W, "start_loss"), ..., "start_loss"),
    "a movement below 0": ((*W, "movements"), [-0.1], "movements.0"),
    "2,001 movements": ((*W, "movements"), [0.5] * 2_001, "movements"),
    "counted by hand": ((*W, "counted_by"), "hand", "counted_by"),
    "a window that ends before it begins": ((*M, "window", "received_ns"), [2, 1], "window"),
    "a window without a block": ((*M, "window", "received_ns"), [2], "received_ns"),
    "a last block of nothing": ((*B, "last_block", "steps"), 0, "last_block.steps"),
    "a result's id": (("predicate", "asked", "result"), "9f", "result"),
}


@pytest.mark.parametrize(("path", "value", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_by_the_name_of_its_field(path: Place, value: Any, field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        statement.parse_result(altered(path, value))
    assert caught.value.field.endswith(field)
    assert field in caught.value.detail
    assert len(caught.value.detail) < 1_000


def test_an_unknown_fields_name_is_not_repeated_at_length() -> None:
    with pytest.raises(InvalidField) as caught:
        statement.parse_result(altered(("predicate", "x" * 100_000), 1))
    assert len(caught.value.field) < 200
    assert len(caught.value.detail) < 400


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workload", "mnist-cnn9"),
        ("workload_digest", "0" * 64),
        ("workload_digest", CATALOGUE[1].digest),
    ],
)
def test_an_unknown_workload(field: str, value: str) -> None:
    cell = RESULT.cell.model_copy(update={field: value})
    raw = statement.result_payload(RESULT.model_copy(update={"cell": cell}))
    with pytest.raises(UnknownWorkload) as caught:
        statement.parse_result(raw)
    assert caught.value.field == "predicate.cell.workload_digest"


def test_the_author_is_the_key_that_signed() -> None:
    statement.require_author(KEY_ID_1, KEY_ID_1)
    with pytest.raises(BadSignature) as caught:
        statement.require_author(KEY_ID_1, KEY_ID_2)
    assert caught.value.field == "predicate.agent.key_id"
    assert KEY_ID_2 in caught.value.detail
