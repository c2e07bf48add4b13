"""Public keys: accepted ones, refused ones, and key ids."""

import base64
import hashlib
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocol.golden_result import KEY_1, KEY_2

from bench_protocol.base.errors import UnacceptableKey
from bench_protocol.signing import keys
from bench_protocol.signing.keys import ORDER, P

PREFIX = bytes.fromhex("302a300506032b6570032100")
# RFC 8032 section 7.1: tests 1, 2, 3 and 1024.
RFC_8032 = [
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    "278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e",
]
SMALL_ORDER = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]


def decoded(raw: bytes) -> keys.Point:
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    point = keys._decompress(y, raw[31] >> 7)
    assert point is not None
    return point


def encoded(point: keys.Point) -> bytes:
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def test_key_id_of_rfc_8032_test_1() -> None:
    assert (
        keys.key_id(KEY_1.public_key())
        == "06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9"
    )
    assert keys.spki(KEY_1.public_key()) == PREFIX + bytes.fromhex(RFC_8032[0])


@pytest.mark.parametrize("text", RFC_8032)
def test_rfc_8032_keys_are_taken(text: str) -> None:
    raw = bytes.fromhex(text)
    assert keys.load_spki(PREFIX + raw).public_bytes(Encoding.Raw, PublicFormat.Raw) == raw


@settings(max_examples=20)
@given(st.binary(min_size=32, max_size=32))
def test_any_key_that_was_made_properly_is_taken(seed: bytes) -> None:
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    assert keys.key_id(keys.load_spki(keys.spki(public))) == keys.key_id(public)


@pytest.mark.parametrize("text", SMALL_ORDER)
def test_small_order_is_refused(text: str) -> None:
    raw = bytes.fromhex(text)
    Ed25519PublicKey.from_public_bytes(raw)  # cryptography takes it
    with pytest.raises(UnacceptableKey) as caught:
        keys.load_spki(PREFIX + raw)
    assert caught.value.field == "public_key"
    assert caught.value.hint


@pytest.mark.parametrize("excess", range(19))
@pytest.mark.parametrize("sign", [0, 1])
def test_every_y_that_is_not_canonical_is_refused(excess: int, sign: int) -> None:
    raw = (P + excess | sign << 255).to_bytes(32, "little")
    with pytest.raises(UnacceptableKey, match="not canonical"):
        keys.refuse_weak(raw)


@pytest.mark.parametrize("text", SMALL_ORDER[4:8] + SMALL_ORDER[8:9])
def test_a_point_with_a_component_of_small_order_is_refused(text: str) -> None:
    small = decoded(bytes.fromhex(text))
    good = decoded(bytes.fromhex(RFC_8032[0]))
    mixed = encoded(keys._add(good, small))
    assert mixed != encoded(good)
    Ed25519PublicKey.from_public_bytes(mixed)
    with pytest.raises(UnacceptableKey, match="prime-order subgroup"):
        keys.load_spki(PREFIX + mixed)


def test_a_y_without_a_point_is_refused() -> None:
    none = [y for y in range(2, 40) if keys._decompress(y, 0) is None]
    assert len(none) > 5
    for y in none:
        with pytest.raises(UnacceptableKey, match="not a point"):
            keys.refuse_weak(y.to_bytes(32, "little"))


def test_the_curve_arithmetic_agrees_with_cryptography() -> None:
    base = (4 * pow(5, -1, P) % P).to_bytes(32, "little")
    point = decoded(base)
    assert keys._is_identity(keys._times(ORDER, point))
    assert not keys._is_identity(keys._times(ORDER - 1, point))
    # RFC 8032 section 5.1.5 with the seed of test 2: public = scalar x base.
    digest = bytearray(hashlib.sha512(KEY_2.private_bytes_raw()).digest()[:32])
    digest[0] &= 248
    digest[31] = digest[31] & 127 | 64
    assert encoded(keys._times(int.from_bytes(digest, "little"), point)).hex() == RFC_8032[1]


OTHER_KINDS: dict[str, Any] = {
    "Ed448": ed448.Ed448PrivateKey.generate,
    "X25519": x25519.X25519PrivateKey.generate,
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_keys_of_other_kinds_are_refused(kind: str) -> None:
    public = OTHER_KINDS[kind]().public_key()
    with pytest.raises(UnacceptableKey):
        keys.load_spki(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


GOOD = PREFIX + bytes.fromhex(RFC_8032[0])


@pytest.mark.parametrize(
    "der",
    [
        b"",
        GOOD[12:],
        GOOD[:-1],
        GOOD + b"\0",
        b"\x30\x81\x2a" + GOOD[2:],  # BER's long form of the length
        base64.b64encode(GOOD),
        b"\x30" * 5_000,
    ],
    ids=["empty", "raw", "short", "long", "BER", "base64", "garbage"],
)
def test_only_the_44_bytes_are_taken(der: bytes) -> None:
    with pytest.raises(UnacceptableKey):
        keys.load_spki(der)
