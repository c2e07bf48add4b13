"""Generated text: a Markov chain of order 1 over a few tokens."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .streams import raw_words
from .workloads import DataSet

# A token has this many likely successors, drawn with chances of 1/2, 1/4, 1/8 and 1/16. In the last
# sixteenth any token follows, so no model's loss gets near 0.
SUCCESSORS = 4


def generated_tokens(
    data_set: DataSet, split: str, rows: NDArray[np.integer[Any]], seed: str
) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
    """The sequences at these places of a split.

    The successors of token t are the words ``SUCCESSORS t`` and following of the stream
    ``{data}/successors``, modulo the number of tokens. Sequence r takes the words from
    ``r (steps + 1)`` on of the stream ``{data}/{split}/tokens``, one a token. The first token is
    its word modulo the number of tokens. The top four bits of each further word count: 0 to 7
    give the first successor, 8 to 11 the second, 12 and 13 the third, 14 the fourth; with 15 the
    token is the word's lower 32 bits modulo the number of tokens.

    Args:
        rows: places in the split, integers of shape (n,).

    Returns:
        Tokens, uint16 of shape (n, steps), and the tokens after them, int32 of the same shape.
    """
    (steps,), count = data_set.sample_shape, np.uint64(data_set.classes)
    prefix = f"data/{data_set.name}/{steps}x{data_set.classes}"
    successors = raw_words(f"{prefix}/successors", seed, data_set.classes * SUCCESSORS) % count
    successors = successors.reshape(-1, SUCCESSORS)
    words = np.empty((len(rows), steps + 1), np.uint64)
    for place, row in enumerate(rows.tolist()):
        words[place] = raw_words(f"{prefix}/{split}/tokens", seed, steps + 1, row * (steps + 1))
    ranks = np.searchsorted([8, 12, 14, 15], words >> np.uint64(60), side="right")
    anywhere = (words & np.uint64(2**32 - 1)) % count
    text = np.empty(words.shape, np.int32)
    text[:, 0] = words[:, 0] % count
    for step in range(1, steps + 1):
        likely = successors[text[:, step - 1], np.minimum(ranks[:, step], SUCCESSORS - 1)]
        text[:, step] = np.where(ranks[:, step] < SUCCESSORS, likely, anywhere[:, step])
    return text[:, :-1].astype(np.uint16), text[:, 1:].copy()
