"""Whether a beat slows the block it is posted in: blocks with and without one, in turns.

``make benchmark-beats``: a worker trains fashion-mlp beside a server on this machine; its parent
posts a beat in the second and third block of every four. A run posts one in its first block, this
benchmark one in every other.
"""

import argparse
import math
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from tests.fakes.live import NO_LIMITS, running_server

from bench_agent.base.messages import BlockDone, PhaseBegan, Timing, WorkerEvent
from bench_agent.remote.beats import BeatPost, BeatServer
from bench_agent.remote.client import Client
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.result import Challenge
from bench_protocol.statistics.comparison import log_mean_interval
from bench_server.db import migrate
from bench_server.db.store import open_engine

from .repeats import cell_of, measured

CHALLENGE = Challenge(id="00" * 16, nonce="00" * 32, server_origin="benchmark")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.beats")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the timed part")
    parser.add_argument("--framework", default="torch")
    parser.add_argument("--server", help="one on another machine; none starts one here")
    options = parser.parse_args()
    if options.server:
        print(compared(options.server, options.seconds, options.framework))
        return
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/server.db"
        engine = open_engine(database)
        migrate.migrate(engine)
        engine.dispose()
        with running_server(database, Path(folder), **NO_LIMITS) as address:
            print(compared(address, options.seconds, options.framework))


def compared(address: str, seconds: float, framework: str) -> str:
    """Time the blocks beside a server; what they took, in a sentence."""
    client = Client(address, None)
    post = BeatPost(BeatServer(address, CHALLENGE, "00" * 32, client.challenge_key()))
    client.close()
    post.connect()
    costs: list[float] = []
    blocks = 0

    def beat() -> None:
        began = time.thread_time()
        answer = post.send(post.body("ab" * 32))
        costs.append(time.thread_time() - began)
        assert not isinstance(answer, str), answer

    with ThreadPoolExecutor(1) as thread:

        def heard(message: WorkerEvent) -> None:
            nonlocal blocks
            if message == PhaseBegan(phase="timing") or isinstance(message, BlockDone):
                if blocks % 4 in (1, 2):
                    thread.submit(beat)
                blocks += 1

        workload = workload_named("fashion-mlp")
        timing = Timing(budget_seconds=seconds, target_spread=0.0)
        cell = cell_of(framework, workload, "tuned")
        durations = measured(cell, workload, timing, "wall", listener=heard).blocks.durations_ns
    ratios = []
    for n in range(0, len(durations) - 3, 4):
        a, b, c, d = durations[n : n + 4]
        ratios.append((b + c) / (a + d))
    low, high = log_mean_interval(ratios)
    return (
        f"{cell}: {len(durations)} blocks of {median(durations) / 1e6:.0f} ms; with a beat over "
        f"without: {math.sqrt(low * high):.4f} ({low:.4f} to {high:.4f}); a post takes "
        f"{median(costs) * 1e3:.2f} ms of the posting thread"
    )


if __name__ == "__main__":
    main()
