"""The window against blocks: time that is left out shows, and late messages do not."""

import random
from collections.abc import Callable, Sequence
from itertools import accumulate

import pytest

from bench_protocol.payload.window import Window, judge

MS = 1_000_000
LATE_MS = (0.1, 40)  # usual delays, and those of a busy machine


def window_of(took_ns: Sequence[int], delays_ns: Sequence[int]) -> Window:
    """Of blocks that took these times, whose messages arrive so late."""
    sent_ns = accumulate(took_ns, initial=10**10)
    late_ns = (sent + delay for sent, delay in zip(sent_ns, delays_ns, strict=True))
    return Window(received_ns=tuple(accumulate(late_ns, max)), blocks_agree=True)


def delays(dice: random.Random, count: int) -> list[int]:
    return [round(dice.uniform(0, dice.choice(LATE_MS)) * MS) for _ in range(count)]


def judged(claim: Callable[[list[int]], list[int]], blocks: int, block_ms: int) -> list[str]:
    """The verdicts on 200 timings whose blocks claim other times than they took."""
    dice, verdicts = random.Random(51), []
    for _ in range(200):
        took_ns = [round(dice.gauss(1, 0.1) * block_ms * MS) for _ in range(blocks)]
        verdicts.append(judge(claim(took_ns), window_of(took_ns, delays(dice, blocks + 1))).verdict)
    return verdicts


def shaved(share: float) -> Callable[[list[int]], list[int]]:
    return lambda took: [round(time * (1 - share)) for time in took]


@pytest.mark.parametrize(("blocks", "block_ms"), [(2, 700), (10, 200), (12, 100), (60, 200)])
def test_late_messages_of_honest_blocks_pass(blocks: int, block_ms: int) -> None:
    assert judged(lambda took: took, blocks, block_ms).count("filled") >= 198


@pytest.mark.parametrize(
    ("blocks", "block_ms", "claim"),
    [
        (12, 100, shaved(0.06)),
        (10, 200, shaved(0.04)),
        (60, 200, shaved(0.015)),
        (600, 20, shaved(0.015)),
        # Work between two blocks, outside of the clock: 5 % of a block.
        (60, 200, lambda took: [time - 10 * MS for time in took]),
        # Only some blocks are shaved: the first, the middle ones, every second one.
        (60, 200, lambda took: [took[0] // 4, *shaved(0.2)(took[1:10]), *took[10:]]),
        (60, 200, lambda took: [*took[:25], *shaved(0.2)(took[25:35]), *took[35:]]),
        (60, 200, lambda took: [t * (97 if n % 2 else 100) // 100 for n, t in enumerate(took)]),
        # The last ones: there two messages alone can be compared.
        (60, 200, lambda took: [*took[:50], *shaved(0.2)(took[50:])]),
        # Time that is lost once.
        (60, 200, lambda took: [*took[:30], max(1, took[30] - 150 * MS), *took[31:]]),
    ],
)
def test_time_that_is_left_out_shows(
    blocks: int, block_ms: int, claim: Callable[[list[int]], list[int]]
) -> None:
    """Each was within the 5 % and 0.1 s that two messages alone need."""
    assert judged(claim, blocks, block_ms).count("longer") >= 198


def test_a_first_message_that_is_late_is_no_doubt() -> None:
    took_ns = [200 * MS] * 10
    assert judge(took_ns, window_of(took_ns, [350 * MS, 150 * MS, *[0] * 9])).verdict == "filled"


def test_the_verdict_says_which_times_it_follows_from() -> None:
    took_ns = [200 * MS] * 10
    window = window_of(took_ns, [0] * 11)
    assert judge(took_ns, window) == ("filled", 2_000 * MS, 2_000 * MS)
    verdict, blocks_ns, window_ns = judge(shaved(0.1)(took_ns), window)
    assert (verdict, blocks_ns / window_ns) == ("longer", pytest.approx(0.9))
