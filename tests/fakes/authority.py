"""Fixed keys of a server under test."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_server.log.server_keys import Authority

ORIGIN = "bench.test"
AUTHORITY = Authority(
    ORIGIN, *(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32) for seed in (101, 102, 103))
)
