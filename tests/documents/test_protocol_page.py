"""docs/protocol.md documents every field of the models, and its test vectors are correct."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.base import errors, strict_json
from bench_protocol.catalogue import nonces, seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, MNIST, workload_named
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload import acts, statement
from bench_protocol.payload.result import Result
from bench_protocol.recompute import figures
from bench_protocol.signing import envelope, keys, merkle, note, receipts
from bench_protocol.training import recomputation, witness_limits
from bench_protocol.training.reading import parts
from bench_protocol.training.recomputed import Figures, Recomputed

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
# "* `a`, `b` (type): meaning", one line for each member or for members of one type.
MEMBERS = re.compile(r"^\* ((?:`\w+`(?:, )?)+) \((.*?)\)", re.MULTILINE)
LISTS = {
    match["name"]: {
        name: said
        for names, said in MEMBERS.findall(match["body"])
        for name in re.findall(r"\w+", names)
    }
    for match in re.finditer(
        r"^###? (?P<name>[\w ]+)\n(?P<body>.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
}
VECTOR = dict(
    re.findall(r"^\| ([\w ,:`/-]+?) \| `(.+)` \|$", PAGE.split("## Test vector")[1], re.M)
)

SCHEMA = Result.model_json_schema()
MODELS: dict[str, Any] = {"Result": SCHEMA} | SCHEMA["$defs"]
SAID = (
    *(acts.Rotation, acts.Revocation, acts.Act, acts.ChallengeRequest, acts.ChallengeIssued),
    *(recomputation.Recomputation, recomputation.Draw, Figures, Recomputed),
)
LISTED = MODELS | {"Key event": statement.KeyEvent.model_json_schema()}
LISTED |= {model.__name__: model.model_json_schema() for model in SAID}


@pytest.mark.parametrize("model", LISTED)
def test_every_model_has_a_list_of_its_members_and_of_what_may_be_left_out(model: str) -> None:
    members, required = set(LISTED[model]["properties"]), set(LISTED[model].get("required", ()))
    assert set(LISTS[model]) == members
    optional = {
        name
        for name, said in LISTS[model].items()
        if said.endswith("?") or "default" in said or (name == "status" and model in MODELS)
    }
    assert members - required == optional


def choices(part: Any) -> list[str]:
    if isinstance(part, dict):
        values = [*part.get("enum", ()), *([part["const"]] if "const" in part else [])]
        return values + [value for inner in part.values() for value in choices(inner)]
    if isinstance(part, list):
        return [value for inner in part for value in choices(inner)]
    return []


@pytest.mark.parametrize("model", MODELS)
def test_every_choice_and_every_length_is_named(model: str) -> None:
    for name, part in MODELS[model]["properties"].items():
        said = LISTS[model][name]
        for value in choices({key: inner for key, inner in part.items() if key != "default"}):
            assert f"`{value}`" in said, (name, value)
        if length := part.get("maxItems") or part.get("maxProperties"):
            assert f"{length:,}" in said, name


def test_every_error_code_is_named() -> None:
    codes = {
        kind.code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.ProtocolError)
    } - {"protocol_error"}
    for code in codes:
        assert f"`{code}`" in PAGE


def test_names_of_the_statement() -> None:
    for name in (
        statement.RESULT_PAYLOAD_TYPE,
        statement.KEY_EVENT_PAYLOAD_TYPE,
        statement.STATEMENT_TYPE,
        statement.PREDICATE_TYPE,
    ):
        assert f"`{name}`" in PAGE
    assert f"{strict_json.MAX_BYTES:,} bytes" in PAGE


def test_vector_of_the_envelope() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(VECTOR["private seed"]))
    kind, payload = VECTOR["payload type"], VECTOR["payload"].encode()
    assert keys.spki(key.public_key()).hex() == VECTOR["SubjectPublicKeyInfo"]
    assert keys.key_id(key.public_key()) == VECTOR["key id"]
    assert envelope.pae(kind, payload).hex() == VECTOR["PAE"]
    assert key.sign(envelope.pae(kind, payload)).hex() == VECTOR["signature"]
    assert envelope.seal(kind, payload, key).decode() == VECTOR["envelope"]


def test_vector_of_the_cell() -> None:
    cell = Cell.model_validate_json(VECTOR["cell"])
    assert strict_json.dumps(json.loads(VECTOR["cell"])).decode() == VECTOR["cell"]
    assert cell.digest == VECTOR["cell digest"] == strict_json.digest(json.loads(VECTOR["cell"]))
    assert cell.workload_digest == workload_named(cell.workload).digest


def test_vectors_of_the_seeds() -> None:
    words = seeded.raw_words("order/0", seeded.DEFAULT_SEED, 4)
    said = VECTOR["words of `order/0`, default seed"]
    assert " ".join(f"{word:016x}" for word in words.tolist()) == said
    assert " ".join(map(str, seeded.order(8, 0).tolist())) == VECTOR["order of 8 samples, epoch 0"]
    kernel = seeded.initial_weights(workload_named("mnist-cnn"))[0]["kernel"].ravel()[:4]
    said = VECTOR["first 4 weights of `mnist-cnn`, float32 little-endian"]
    assert kernel.astype("<f4").tobytes().hex() == said


def test_vectors_of_the_data() -> None:
    pictures, labels = seeded.generated_data(MNIST, "train", 8)
    said = VECTOR["labels of `mnist` `train`, first 8"]
    assert " ".join(map(str, labels.tolist())) == said
    said = VECTOR["first 8 pixels of the first picture"]
    assert " ".join(map(str, pictures[0, 0, :8, 0].tolist())) == said
    assert seeded.data_digest((pictures, labels)) == VECTOR["data digest of these 8 samples"]


NONCE = VECTOR["nonce of the next lines"]


@pytest.mark.parametrize(
    ("row", "name", "batch_size"),
    [
        ("parts of `mnist-dense`, batch 8192: kind, first step, steps", "mnist-dense", 8192),
        ("parts of `mnist-dense`, batch 1", "mnist-dense", 1),
        ("parts of `fashion-mlp`, batch 128", "fashion-mlp", 128),
    ],
)
def test_vectors_of_the_parts(row: str, name: str, batch_size: int) -> None:
    workload = workload_named(name)
    done = parts(workload, batch_size, nonces.seed_of(NONCE, workload.digest))
    assert ", ".join(f"{part.kind} {part.first} {part.steps}" for part in done) == VECTOR[row]


def test_vectors_of_the_recomputation() -> None:
    """Ten digits, which is what a stranger's float64 computation gives too."""

    def said(*values: float) -> str:
        return " ".join(f"{value:.10g}" for value in values)

    workload = workload_named("mnist-dense")
    assert nonces.seed_of(NONCE, workload.digest) == VECTOR["seed of `mnist-dense`"]
    found = figures(workload, NONCE, 1)
    deep, short, first = found.readings
    start = "start loss of `mnist-dense`, batch 1, generated data"
    assert said(found.start_loss) == VECTOR[start]
    assert said(deep.loss) == VECTOR["loss of its `deep` reading"]
    assert said(*deep.movements) == VECTOR["movements of its `deep` reading, lower ends"]
    assert said(*short.loss_range) == VECTOR["loss of its `short` reading, both ends"]
    assert said(*first.loss_range) == VECTOR["loss of its `first` reading, both ends"]
    assert said(*first.movements_high) == VECTOR["movements of its `first` reading, upper ends"]


def test_the_measured_limits_are_those_in_use() -> None:
    """A column for the devices and precisions that share a table; a row for each kind of part."""
    columns: list[tuple[list[Any], Any]] = []
    for key, table in witness_limits.MEASURED.items():
        same = next((members for members, other in columns if other == table), None)
        if same is None:
            columns.append(([key], table))
        else:
            same.append(key)
    starts = [
        "; ".join(dict.fromkeys(f"{witness_limits.START[one]:g}" for one in keys))
        for keys, _ in columns
    ]
    assert f"| `start_loss` | {' | '.join(starts)} |\n" in PAGE
    for kind in ("short", "first", "deep", "masks", "steady"):
        for convolves in (False, True):
            pairs = ["{:g}, {:g}".format(*table[kind][convolves]) for _, table in columns]
            name = f"`{kind}`{', conv.' if convolves else ''}"
            assert f"| {name} | {' | '.join(pairs)} |\n" in PAGE
    for members, _ in columns:
        devices, precisions = (list(dict.fromkeys(one)) for one in zip(*members, strict=True))
        named = " and ".join(f"`{one}`" for one in precisions)
        assert f"| {' and '.join(devices)}, {named} |" in PAGE
    tighter = f"{witness_limits.STATISTICS:g}, of the median {witness_limits.STEADY_MEDIAN:g}"
    assert f"of running statistics {tighter}" in PAGE
    assert f"may be {witness_limits.MEDIAN:.0e}".replace("e-0", "e-") in PAGE
    named = " and ".join(f"`{one}`" for one in witness_limits.MEDIAN_PRECISIONS)
    assert f"In {named} with convolutions the median" in PAGE


def test_the_page_names_every_layer_and_optimiser() -> None:
    section = PAGE.split("## Recomputation")[1].split("## Test vector")[0]
    kinds = {layer.kind for workload in CATALOGUE for layer in workload.layers}
    for kind in kinds | {"batch_norm", "rmsprop", "adam", "sgd"}:
        assert f"`{kind}`" in section, kind


def test_vectors_of_the_log() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(VECTOR["private seed"]))
    assert str(note.note_key("log.example", key)) == VECTOR["log key"]
    opened = envelope.read(VECTOR["envelope"].encode())
    salt = bytes.fromhex(VECTOR["salt"])
    entry = receipts.commitment(salt, opened)
    assert entry.hex() == VECTOR["commitment of the envelope above"]
    assert merkle.leaf_hash(entry).hex() == VECTOR["its leaf hash"]
    proof = json.loads(PAGE.split("| proof, as a JSON string | `")[1].split("` |")[0])
    receipt = receipts.parse_proof(salt, proof)
    checkpoint = receipts.verify_receipt(receipt, opened, note.parse_key(VECTOR["log key"]))
    said = PAGE.split("then this one | `")[1].split("`")[0]
    assert (checkpoint.size, checkpoint.root.hex(), receipt.index) == (2, said, 1)
