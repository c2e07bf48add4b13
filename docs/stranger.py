"""A client of a Trainmark server that uses none of our packages: docs/protocol.md, in 250 lines.

    pip install cryptography numpy
    python stranger.py http://127.0.0.1:8000

It makes a key, enrolls it, asks for a challenge, and computes the deep reading of ``mnist-dense``
under the challenge's nonce. Then it sends one invented failure (so that no ranking is touched), and
checks the receipt: the log's signature, and that the log holds what was sent.
"""

import base64
import hashlib
import json
import secrets
import sys
import time
from datetime import UTC, datetime
from urllib.request import Request, urlopen

import numpy as np
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


def words(purpose, seed, count, first=0):
    """Some words of a stream, by default from its first: Philox4x64-10 ("Seeds")."""
    full = 2**64 - 1
    digest = sha256(f"trainmark/v1/{purpose}/{seed}".encode())
    drawn = []
    for block in range(first // 4 + 1, (first + count - 1) // 4 + 2):
        low, high = (int.from_bytes(digest[at : at + 8], "little") for at in (0, 8))
        a, b, c, d = block, 0, 0, 0
        for _ in range(10):
            one, other = 0xD2E7470EE14C6C93 * a, 0xCA5A826395121157 * c
            a, b, c, d = other >> 64 ^ b ^ low, other & full, one >> 64 ^ d ^ high, one & full
            low, high = low + 0x9E3779B97F4A7C15 & full, high + 0xBB67AE8584CAA73B & full
        drawn += [a, b, c, d]
    return np.array(drawn[first % 4 :][:count], np.uint64)


def stream_bytes(purpose, seed, first, count):
    """Some bytes of a stream's words, little-endian."""
    start = first // 8
    found = words(purpose, seed, (first + count - 1) // 8 + 1 - start, start)
    return found.astype("<u8").view(np.uint8)[first - 8 * start :][:count]


def pictures(data, rows):
    """Generated samples of the training split ("Generated data")."""
    height, width, channels = data["sample_shape"]
    classes, patterns, size = data["classes"], data["patterns"], height * width * channels
    prefix = f"data/{data['name']}/{height}x{width}x{channels}"
    word = [int(words(f"{prefix}/train/labels", "data", 1, int(row))[0]) for row in rows]
    shown = [(value >> 40) ** 2 * patterns >> 48 for value in word]
    wrong = [(value >> 32) % 256 < 32 for value in word]
    labels = [w % classes if bad else p % classes
              for w, p, bad in zip(word, shown, wrong, strict=True)]  # fmt: skip
    grid = (-(-height // 4), -(-width // 4), channels)
    cells = grid[0] * grid[1] * channels
    lit = [stream_bytes(f"{prefix}/patterns", "data", p * cells, cells) for p in shown]
    lit = np.stack(lit).reshape(-1, *grid)
    lit = np.where(lit < 32, 6 * lit, 0).repeat(4, axis=1).repeat(4, axis=2)
    noise = [stream_bytes(f"{prefix}/train/noise", "data", int(r) * size, size) for r in rows]
    noise = np.stack(noise).reshape(-1, height, width, channels)
    return (noise >> 5) + lit[:, :height, :width].astype(np.uint8), np.array(labels)


def deep_part(workload, seed, batch):
    """First step and number of steps, of a workload without Dropout and convolutions ("Parts")."""
    per_epoch = workload["data_set"]["train_samples"] // batch
    units = [layer["units"] for layer in workload["layers"] if layer["kind"] == "dense"]
    values = int(np.prod(workload["data_set"]["sample_shape"])) + sum(units)  # also of "flatten"
    samples = int(10 / (workload["training_flops_per_sample"] / 4.5e10 + 9e-9 * values))
    most = samples // batch
    if most > 43:
        most -= 42
    elif batch <= workload["batch_size"] and 3 * batch <= 8 * samples:
        most = max(3, most)
    most = max(1, min(512, most))
    drawn = sha256(f"trainmark/reading/v1/{seed}/0".encode())
    shorter, before = (int.from_bytes(drawn[at : at + 8], "big") for at in (0, 8))
    steps = most - shorter % (most // 4 + 1)
    most_before = max(1, min(steps - 1, per_epoch))
    least_before = 16 if most_before >= 16 else 1
    return per_epoch - least_before - before % (most_before - least_before + 1), steps


def reading(workload, nonce, batch):
    """Loss of the deep reading and lower ends of its movements, under Adam, in two epochs; layers
    are dense ("Recomputation"). Float64, but for what is drawn."""
    seed = sha256(f"trainmark/session/v1/{nonce}/{workload['digest']}".encode()).hex()[:32]
    data, adam = workload["data_set"], workload["optimizer"]
    first, steps = deep_part(workload, seed, batch)
    samples, whole = data["train_samples"], data["train_samples"] // batch * batch
    drawn = [words(f"order/{epoch}", seed, samples) for epoch in (0, 1)]
    rows = np.concatenate([np.argsort(order, kind="stable")[:whole] for order in drawn])
    x, y = pictures(data, rows[first * batch : (first + steps) * batch])
    x = (x.astype(np.float32) / np.float32(255)).astype(float).reshape(len(y), -1)
    weights, inputs = [], x.shape[1]
    for number, layer in enumerate(workload["layers"]):
        if layer["kind"] != "dense":
            continue
        units = layer["units"]
        u = (words(f"weights/{number}/kernel", seed, inputs * units) >> np.uint64(40)) * 2.0**-24
        kernel = ((2 * u - 1) * np.sqrt(6 / (inputs + units))).astype(np.float32)
        weights += [kernel.astype(float).reshape(inputs, units), np.zeros(units)]
        inputs = units
    start = [w.copy() for w in weights]
    moments = [(np.zeros_like(w), np.full_like(w, 1e-4)) for w in weights]
    for step in range(steps):
        batch_rows = slice(step * batch, (step + 1) * batch)
        loss, gradients = backward(weights, x[batch_rows], y[batch_rows])
        t = 16_384 + step + 1
        b1, b2 = (float(np.float32(adam[name])) ** t for name in ("beta_1", "beta_2"))
        alpha = adam["learning_rate"] * np.sqrt(1 - b2) / (1 - b1)
        for w, g, (m, v) in zip(weights, gradients, moments, strict=True):
            m[:] = adam["beta_1"] * m + (1 - adam["beta_1"]) * g
            v[:] = adam["beta_2"] * v + (1 - adam["beta_2"]) * g * g
            w -= alpha * m / (np.sqrt(v) + adam["epsilon"])
    norm, rounding = np.linalg.norm, 2.0**-24 * steps
    pairs = zip(weights, start, strict=True)
    return loss, [max(0.0, norm(w - w0) - rounding * norm(w0)) for w, w0 in pairs]


def backward(weights, x, y):
    """Mean loss of a batch and its gradients; all dense layers but the last have a ReLU."""
    outputs = [x]
    for at in range(0, len(weights), 2):
        z = outputs[-1] @ weights[at] + weights[at + 1]
        outputs.append(np.maximum(z, 0) if at + 2 < len(weights) else z)
    z = outputs.pop()
    z = z - z.max(axis=1, keepdims=True)
    total = np.exp(z).sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    loss = float(np.mean(np.log(total[:, 0]) - z[rows, y]))
    dz = np.exp(z) / total
    dz[rows, y] -= 1
    dz /= len(y)
    gradients = []
    for at in range(len(weights) - 2, -1, -2):
        inputs = outputs.pop()
        gradients = [inputs.T @ dz, dz.sum(axis=0), *gradients]
        dz = dz @ weights[at].T * (inputs > 0)
    return loss, gradients


log = call("/api/v1/log")
event = {"event": "enroll", "public_key": base64.b64encode(SPKI).decode(), "at": utc(RUN_STARTED),
         "server_origin": log["origin"], "license": log["license"]}  # fmt: skip
enrollment = sign("application/vnd.trainmark.key-event.v1+json", event)
check_receipt(enrollment, call("/api/v1/keys", {"envelope": enrollment})["receipt"], log["key"])

RUN_ID = secrets.token_hex(16)
given = call("/api/v1/challenges", sign("application/vnd.trainmark.challenge-request.v1+json", {
    "id": secrets.token_hex(16), "run_id": RUN_ID, "key_id": KEY_ID,
    "server_origin": log["origin"]}))  # fmt: skip
workload = next(w for w in call("/api/v1/workloads") if w["name"] == "mnist-dense")
loss, movements = reading(workload, given["nonce"], batch=1)
print(f"nonce {given['nonce']}")
print(f"loss {loss:.10g}")
print("movements", *(f"{moved:.10g}" for moved in movements))
cell = {"workload": workload["name"], "workload_digest": workload["digest"], "framework": "mine",
        "device": {"kind": "cpu", "index": 0}, "recipe": "naive", "batch_size": 1,
        "precision": "float32", "data": "generated"}  # fmt: skip
end_ns = time.monotonic_ns() - ZERO_NS
result = {
    "schema_version": 1,
    "run_id": RUN_ID, "repeat": 1, "cell": cell, "seed": "0" * 32,
    "challenge": {name: given[name] for name in ("id", "nonce", "server_origin")},
    "agent": {"version": "1", "key_id": KEY_ID},
    "machine": {"machine_hash": secrets.token_hex(32),
                "cpu": {"brand": "unknown", "architecture": "unknown"},
                "os": {"name": "other", "version": "?"}},
    "environment": {"python": "none", "packages": {}},
    "outcome": {"status": "failed", "kind": "unavailable", "phase": "start"},
    "clocks": {"run_started": utc(RUN_STARTED), "started": utc(RUN_STARTED),
               "started_ns": 0, "finished_ns": end_ns,
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
