"""Whether checkpoints of a log are of one history, by its tiles."""

from collections.abc import Callable, Iterable
from itertools import pairwise

from bench_protocol.base.errors import ProtocolError
from bench_protocol.signing import merkle, receipts, tiles
from bench_protocol.signing.receipts import Checkpoint

Fetch = Callable[[str], bytes]


def size_of(checkpoint: Checkpoint) -> int:
    return checkpoint.size


def continues(fetch: Fetch, old: Checkpoint, new: Checkpoint) -> bool:
    """Whether the log of ``new``, whose tiles ``fetch`` returns, has all entries of ``old``."""
    if new.size < old.size:
        return False
    try:
        newest_of_one_history(fetch, {old, new})
    except ProtocolError:
        return False
    return True


def newest_of_one_history(fetch: Fetch, checkpoints: Iterable[Checkpoint]) -> Checkpoint:
    """The largest of some checkpoints, if each continues the next smaller one. Each tile is fetched
    once for all proofs.

    Raises:
        ProtocolError: one does not, or the log lacks a tile.
    """
    history = sorted(checkpoints, key=size_of)
    newest = history[-1]
    steps = [
        (old, new, merkle.consistency_ranges(old.size, new.size)) for old, new in pairwise(history)
    ]
    wanted = [node for _, _, ranges in steps for node in merkle.nodes_of(ranges)]
    nodes = tiles.fetch_nodes(fetch, newest.size, wanted)
    for old, new, ranges in steps:
        proof = [merkle.range_hash(nodes, *each) for each in ranges]
        receipts.verify_growth(old, new, proof)
    return newest
