"""One result with every field filled, and a failure, as the files in tests/golden hold them.

Both are of a fixed key. From the first release on a golden file is never regenerated: a signed
payload must be readable for ever. A later version of the payload gets its own files.
"""

import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.payload import statement
from bench_protocol.payload.result import Measured
from bench_protocol.signing.keys import key_id

GOLDEN = Path(__file__).parent.parent / "golden"
# RFC 8032 section 7.1, tests 1 and 2.
SEED_1 = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
SEED_2 = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
KEY_1 = Ed25519PrivateKey.from_private_bytes(SEED_1)
KEY_2 = Ed25519PrivateKey.from_private_bytes(SEED_2)
KEY_ID_1 = key_id(KEY_1.public_key())
KEY_ID_2 = key_id(KEY_2.public_key())

PAYLOAD = (GOLDEN / "result_v1.json").read_bytes()
RESULT = statement.parse_result(PAYLOAD)
FAILURE = statement.parse_result((GOLDEN / "failure_v1.json").read_bytes())
assert isinstance(RESULT.outcome, Measured)
MEASUREMENT = RESULT.outcome.measurement
Place = tuple[str | int, ...]


def altered(path: Place, value: Any, base: bytes = PAYLOAD) -> bytes:
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
