"""Tiles: the log's tree as files of 256 hashes or entries, each at a fixed address (C2SP
tlog-tiles)."""

import re
import struct
from collections.abc import Callable, Iterable, Iterator

from ..base.errors import InvalidProof
from .merkle import HASH_BYTES, Node, node_hash

HEIGHT = 8
WIDTH = 1 << HEIGHT
NUMBER = re.compile(r"((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?")


def tile_number(index: int, width: int) -> str:
    """The last part of a tile's address: ``x001/x234/067``, ``000.p/12``."""
    digits = f"{index % 1000:03d}"
    while index := index // 1000:
        digits = f"x{index % 1000:03d}/{digits}"
    return digits if width == WIDTH else f"{digits}.p/{width}"


def parse_tile_number(text: str) -> tuple[int, int]:
    """Parse index and width of a tile.

    Raises:
        InvalidProof: not a tile's number in canonical form.
    """
    match = NUMBER.fullmatch(text)
    index = int(match[1].replace("x", "").replace("/", "")) if match else 0
    width = int(match[2] or WIDTH) if match else 0
    if match is None or index >= 1 << 60 or tile_number(index, width) != text or width > WIDTH:
        raise InvalidProof("not a tile's number, as in 000, x001/234 or 000.p/12", field="tile")
    return index, width


def tile_address(level: int, index: int, size: int) -> str:
    """Address of a tile of hashes in a tree of ``size`` leaves; the last one may be partial."""
    count = size >> (HEIGHT * level)
    return f"/tile/{level}/{tile_number(index, min(WIDTH, count - index * WIDTH))}"


def entries_addresses(size: int) -> Iterator[str]:
    for start in range(0, size, WIDTH):
        yield f"/tile/entries/{tile_number(start // WIDTH, min(WIDTH, size - start))}"


def encode_entries(entries: Iterable[bytes]) -> bytes:
    """Encode an entry bundle: the length of each entry as 16 bits, big-endian, then the entry."""
    return b"".join(struct.pack(">H", len(entry)) + entry for entry in entries)


def decode_entries(bundle: bytes) -> list[bytes]:
    """Decode the entries of a bundle.

    Raises:
        InvalidProof: it ends within an entry.
    """
    entries = []
    while bundle:
        length = int.from_bytes(bundle[:2], "big")
        if len(bundle) < 2 + length:
            raise InvalidProof("the entry bundle is cut off", field="tile")
        entries.append(bundle[2 : 2 + length])
        bundle = bundle[2 + length :]
    return entries


def fetch_nodes(
    fetch: Callable[[str], bytes], size: int, wanted: Iterable[Node]
) -> dict[Node, bytes]:
    """Read nodes of a tree of ``size`` leaves from its tiles.

    Args:
        fetch: returns the bytes at an address; called once for each.

    Raises:
        InvalidProof: a tile's length differs from its address.
    """
    tiles: dict[str, bytes] = {}
    nodes = {}
    for level, index in wanted:
        tile_level, height = divmod(level, HEIGHT)
        first = index << height
        address = tile_address(tile_level, first // WIDTH, size)
        if address not in tiles:
            tiles[address] = fetch(address)
            count = min(WIDTH, (size >> (HEIGHT * tile_level)) - first // WIDTH * WIDTH)
            if len(tiles[address]) != count * HASH_BYTES:
                raise InvalidProof(f"{address} does not hold {count} hashes", field="tile")
        start = first % WIDTH
        nodes[level, index] = _subtree(tiles[address], start, 1 << height)
    return nodes


def _subtree(tile: bytes, start: int, count: int) -> bytes:
    row = [tile[at * HASH_BYTES : (at + 1) * HASH_BYTES] for at in range(start, start + count)]
    while len(row) > 1:
        row = [node_hash(*pair) for pair in zip(row[::2], row[1::2], strict=True)]
    return row[0]
