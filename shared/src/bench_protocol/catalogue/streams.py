"""Streams of numbers that are equal on every machine.

Everything derives from the raw 64-bit output of Philox4x64-10 (Salmon et al. 2011) by the
arithmetic below; NumPy's distributions are not used, because they may change between versions.
A stream's key is the first 16 bytes, little-endian, of SHA-256("trainmark/v1/" purpose "/" seed);
its counter starts at zero.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray


def raw_words(purpose: str, seed: str, count: int, first: int = 0) -> NDArray[np.uint64]:
    """``count`` raw 64-bit words of one stream, from word ``first`` on."""
    words = stream(purpose, seed, first // 4).random_raw(first % 4 + count)
    return np.asarray(words, dtype=np.uint64)[first % 4 :]


def stream(purpose: str, seed: str, counter: int = 0) -> np.random.Philox:
    """One stream; a counter makes four words."""
    key = hashlib.sha256(f"trainmark/v1/{purpose}/{seed}".encode()).digest()[:16]
    return np.random.Philox(key=int.from_bytes(key, "little"), counter=counter)


def unit_interval(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Upper 24 bits of each word as a multiple of 2**-24 in [0, 1)."""
    return (words >> np.uint64(40)).astype(np.float64) * 2.0**-24
