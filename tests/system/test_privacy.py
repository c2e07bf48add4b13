"""Nothing that names a person or a machine reaches what is stored, logged or sent."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

from tests.system.conftest import Agent, Server

# Planted where an agent could pick them up.
HOST, USER, SERIAL = "host-named-after-anna", "anna-b-secret", "C02SECRETSERIAL"


def test_no_stored_byte_names_the_person(
    agent: Agent, make_server: Callable[[], Server], tmp_path: Path
) -> None:
    server = make_server()
    address = server.start()
    home = tmp_path / "home" / USER
    home.mkdir(parents=True)
    planted = {
        "HOME": str(home),
        "USER": USER,
        "LOGNAME": USER,
        "HOSTNAME": HOST,
        "BENCH_SERIAL": SERIAL,
        "TF_SECRET": SERIAL,
    }
    ran = agent(
        "run", "--preset", "smoke", "--workload", "fashion-mlp", "--framework", "mlx",
        "--device", "cpu", "--recipe", "naive", "--budget-seconds", "0.5",
        "--server", address, "--yes", "--json", **planted,
    )  # fmt: skip
    assert ran.code == 0, ran.stderr
    assert ran.json()["results"]
    server.stop()
    words = [HOST, USER, SERIAL, str(home), socket.gethostname()]
    # A short host name, or one that many share, is part of other words too.
    words = [word for word in words if len(word) > 7 and word != "localhost"]
    for name in ("/etc/machine-id", "/sys/class/dmi/id/product_uuid"):
        if os.access(name, os.R_OK):
            words.append(Path(name).read_text().strip())
    searched = [
        path
        for path in (*tmp_path.glob("server*"), *agent.home.glob("outbox/*/*"))
        if path.is_file()
    ]
    assert any(path.suffix == ".db" for path in searched)
    payloads = [json.dumps(r).encode() for r in ran.json()["results"]]
    for content in (*(path.read_bytes() for path in searched), *payloads):
        for word in filter(None, words):
            assert word.encode() not in content, word
