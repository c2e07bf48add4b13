"""Whether a beat slows the block it is posted in: blocks with and without one, in turns.

``python benchmarks/beats.py http://127.0.0.1:8000 [SECONDS [FRAMEWORK]]`` beside a server. A worker
trains fashion-mlp; its parent posts a beat in the second and third block of every four. A run posts
one in its first block, this benchmark one in every other.
"""

import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from repeats import cell_of, measured

from bench_agent.base.messages import BlockDone, PhaseBegan, Timing, WorkerEvent
from bench_agent.remote.beats import BeatPost, BeatServer
from bench_agent.remote.client import Client
from bench_protocol.catalogue import workload_named
from bench_protocol.comparison import log_mean_interval
from bench_protocol.result import Challenge

CHALLENGE = Challenge(id="00" * 16, nonce="00" * 32, server_origin="benchmark")


def main(address: str, seconds: float, framework: str) -> None:
    client = Client(address, None)
    server = BeatServer(address, CHALLENGE, "00" * 32, client.challenge_key())
    post = BeatPost(server)
    post.connect()
    posted: set[int] = set()
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
                    posted.add(blocks)
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
    print(
        f"{cell}: {len(durations)} blocks of {median(durations) / 1e6:.0f} ms; with a beat over "
        f"without: {math.sqrt(low * high):.4f} ({low:.4f} to {high:.4f}); a post takes "
        f"{median(costs) * 1e3:.2f} ms of the posting thread"
    )


if __name__ == "__main__":
    address, seconds, framework = [*sys.argv[1:], *("60", "torch")[len(sys.argv) - 2 :]]
    main(address, float(seconds), framework)
