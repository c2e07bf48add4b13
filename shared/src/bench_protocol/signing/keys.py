"""Ed25519 keys: their ids, and which public keys are refused at enrollment.

``cryptography`` loads public keys of small order, for which a fixed forged signature verifies on
arbitrary messages; proof of possession proves nothing for such a key. The curve arithmetic is that
of RFC 8032 section 5.1.4, on public data only, so it need not run in constant time.
"""

import hashlib

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
)

from ..base.errors import UnacceptableKey

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_MINUS_ONE = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]
IDENTITY: Point = (0, 1, 1, 0)


def spki(public_key: Ed25519PublicKey) -> bytes:
    """DER SubjectPublicKeyInfo of the key, 44 bytes."""
    return public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def key_id(public_key: Ed25519PublicKey) -> str:
    """SHA-256 of the SubjectPublicKeyInfo, lower-case hex."""
    return hashlib.sha256(spki(public_key)).hexdigest()


def load_spki(der: bytes) -> Ed25519PublicKey:
    """Read a public key for enrollment.

    Raises:
        UnacceptableKey: not an Ed25519 key, or one whose signatures prove nothing.
    """
    try:
        key = load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey) or spki(key) != der:
        raise UnacceptableKey(
            "public_key is not a DER SubjectPublicKeyInfo of an Ed25519 key",
            field="public_key",
            hint="send the 44 bytes of SubjectPublicKeyInfo in base64",
        )
    refuse_weak(key.public_bytes(Encoding.Raw, PublicFormat.Raw))
    return key


def refuse_weak(raw: bytes) -> None:
    """Refuse a 32-byte public key outside the prime-order subgroup.

    Raises:
        UnacceptableKey: y is not canonical, no point has this y, the point is of small order, or
            it has a component of small order.
    """
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    if y >= P:
        raise _weak("its y coordinate is not canonical")
    point = _decompress(y, raw[31] >> 7)
    if point is None:
        raise _weak("it is not a point of the curve")
    if _is_identity(_times(8, point)):
        raise _weak("it is of small order")
    if not _is_identity(_times(ORDER, point)):
        raise _weak("it is not in the prime-order subgroup")


def _weak(why: str) -> UnacceptableKey:
    return UnacceptableKey(
        f"public_key is refused: {why}", field="public_key", hint="make a new key"
    )


def _decompress(y: int, sign: int) -> Point | None:
    """RFC 8032 section 5.1.3, in extended coordinates (x, y, 1, x y)."""
    x_squared = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(x_squared, (P + 3) // 8, P)
    if (x * x - x_squared) % P != 0:
        x = x * SQRT_MINUS_ONE % P
    if (x * x - x_squared) % P != 0 or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


def _add(p: Point, q: Point) -> Point:
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def _times(scalar: int, point: Point) -> Point:
    result = IDENTITY
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point = _add(point, point)
        scalar >>= 1
    return result


def _is_identity(point: Point) -> bool:
    return point[0] % P == 0 and (point[1] - point[2]) % P == 0
