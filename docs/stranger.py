"""A client of a Trainmark server that uses none of our packages: docs/protocol.md, in 100 lines.

    pip install cryptography
    python stranger.py http://127.0.0.1:8000

It makes a key, enrolls it, asks for a challenge, sends one invented failure (so that no ranking is
touched), and checks the receipt: the log's signature, and that the log holds what was sent.
"""

import base64
import hashlib
import json
import secrets
import sys
import time
from datetime import UTC, datetime
from urllib.request import Request, urlopen

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SERVER = sys.argv[1].rstrip("/")
KEY = Ed25519PrivateKey.generate()
SPKI = bytes.fromhex("302a300506032b6570032100") + KEY.public_key().public_bytes_raw()
KEY_ID = hashlib.sha256(SPKI).hexdigest()
RUN_STARTED, ZERO_NS = datetime.now(UTC), time.monotonic_ns()


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def utc(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def call(path, document=None):
    body = None if document is None else canonical(document)
    request = Request(SERVER + path, body, {"Content-Type": "application/json"})
    with urlopen(request) as answer:
        return json.load(answer)


def sign(kind, document):
    payload, name = canonical(document), kind.encode()
    pae = b"DSSEv1 %d %s %d %s" % (len(name), name, len(payload), payload)
    signature = {"keyid": KEY_ID, "sig": base64.b64encode(KEY.sign(pae)).decode()}
    text = base64.b64encode(payload).decode()
    return {"payload": text, "payloadType": kind, "signatures": [signature]}


def check_receipt(envelope, receipt, log_key):
    """The note's signature (signed-note), the entry, and the path to the root (RFC 6962)."""
    head, _, note = receipt["proof"].partition("\n\n")
    text, _, signature_lines = note.rpartition("\n\n")
    text += "\n"
    public = base64.b64decode(log_key.split("+", 2)[2])[1:]
    signature = base64.b64decode(signature_lines.split()[2])[4:]
    Ed25519PublicKey.from_public_bytes(public).verify(signature, text.encode())
    size, root = int(text.split("\n")[1]), base64.b64decode(text.split("\n")[2])

    signed = envelope["signatures"][0]
    commitment = sha256(
        bytes.fromhex(receipt["salt"]),
        sha256(base64.b64decode(envelope["payload"])),
        bytes.fromhex(signed["keyid"]),
        base64.b64decode(signed["sig"]),
    )
    found, index, last = sha256(b"\0", commitment), receipt["log_index"], size - 1
    for line in head.split("\n")[2:]:
        sibling = base64.b64decode(line)
        if index % 2 or index == last:
            found = sha256(b"\1", sibling, found)
            while index and not index % 2:
                index, last = index // 2, last // 2
        else:
            found = sha256(b"\1", found, sibling)
        index, last = index // 2, last // 2
    if last or found != root:
        sys.exit("the log does not hold it")
    print(f"entry {receipt['log_index']} of {size}")


log = call("/api/v1/log")
event = {"event": "enroll", "public_key": base64.b64encode(SPKI).decode(), "at": utc(RUN_STARTED),
         "server_origin": log["origin"], "license": log["license"]}  # fmt: skip
enrollment = sign("application/vnd.trainmark.key-event.v1+json", event)
check_receipt(enrollment, call("/api/v1/keys", {"envelope": enrollment})["receipt"], log["key"])

given = call("/api/v1/challenges", {"key_id": KEY_ID})
workload = call("/api/v1/workloads")[0]
cell = {"workload": workload["name"], "workload_digest": workload["digest"], "framework": "mine",
        "device": {"kind": "cpu", "index": 0}, "recipe": "naive", "batch_size": 1,
        "precision": "float32", "data": "generated"}  # fmt: skip
end_ns = time.monotonic_ns() - ZERO_NS
result = {
    "run_id": secrets.token_hex(16), "repeat": 1, "cell": cell, "seed": "0" * 32,
    "challenge": {name: given[name] for name in ("id", "nonce", "server_origin")},
    "agent": {"version": "1", "key_id": KEY_ID},
    "machine": {"machine_hash": secrets.token_hex(32), "cpu": {"brand": "?", "architecture": "?"},
                "os": {"name": "other", "version": "?"}},
    "environment": {"python": "none", "packages": {}},
    "outcome": {"status": "failed", "kind": "unavailable", "phase": "start"},
    "clocks": {"run_started": utc(RUN_STARTED), "started": utc(RUN_STARTED),
               "finished": utc(datetime.now(UTC)), "started_ns": 0, "finished_ns": end_ns,
               "signed": utc(datetime.now(UTC)), "signed_ns": end_ns},
}  # fmt: skip
digests = (("workload", workload["digest"]), ("cell", sha256(canonical(cell)).hex()))
envelope = sign("application/vnd.in-toto+json", {
    "_type": "https://in-toto.io/Statement/v1",
    "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in digests],
    "predicateType": "urn:trainmark:training-result:v1", "predicate": result,
})  # fmt: skip
answer = call("/api/v1/results", envelope)
check_receipt(envelope, answer["receipt"], log["key"])
shown = call(f"/api/v1/results/{answer['id']}?wait=10")
print(f"result {answer['id']}, trust level {shown['trust_level']}")
