"""The log's Merkle tree (RFC 6962 section 2.1): hashes, proofs, and verifying them.

A tree of ``size`` leaves is made of complete subtrees. A *node* ``(level, index)`` is the root of
the complete subtree over leaves ``[index << level, (index + 1) << level)``; once it exists it never
changes, so a log stores nodes and every root and proof is a function of a few of them.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from ..base.errors import InvalidProof

HASH_BYTES = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()
Node = tuple[int, int]
Range = tuple[int, int]


def leaf_hash(entry: bytes) -> bytes:
    """Hash of an entry: SHA-256(0x00 || entry)."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node: SHA-256(0x01 || left || right)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def subtrees(start: int, end: int) -> list[Node]:
    """The complete subtrees that leaves ``[start, end)`` are made of, left to right.

    ``start`` is a multiple of the largest power of two that fits, as in every range of a proof.
    """
    nodes = []
    while start < end:
        level = (end - start).bit_length() - 1
        nodes.append((level, start >> level))
        start += 1 << level
    return nodes


def range_hash(nodes: Mapping[Node, bytes], start: int, end: int) -> bytes:
    """Merkle tree hash of leaves ``[start, end)`` from the nodes that :func:`subtrees` names."""
    hashes = [nodes[node] for node in subtrees(start, end)]
    return _fold(hashes)


def inclusion_ranges(index: int, size: int) -> list[Range]:
    """The ranges whose hashes prove leaf ``index`` in a tree of ``size``, from leaf to root."""
    start, end = 0, size
    path = []
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append((middle, end))
            end = middle
        else:
            path.append((start, middle))
            start = middle
    return path[::-1]


def consistency_ranges(old: int, new: int) -> list[Range]:
    """The ranges whose hashes prove that a tree of ``new`` leaves begins with one of ``old``."""
    return _subproof(old, 0, new, True) if 0 < old < new else []


def nodes_of(ranges: Iterable[Range]) -> list[Node]:
    """Every node that the hashes of these ranges are made of."""
    return [node for start, end in ranges for node in subtrees(start, end)]


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> None:
    """Verify that a leaf hash is at ``index`` of the tree (RFC 9162 section 2.1.3.2).

    Raises:
        InvalidProof: it is not, as far as this proof shows.
    """
    if not 0 <= index < size or len(leaf) != HASH_BYTES:
        raise InvalidProof(f"no leaf {index} in a tree of {size}", field="proof")
    inner, last, computed = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise InvalidProof("the inclusion proof is too long", field="proof")
        if inner & 1 or inner == last:
            computed = node_hash(sibling, computed)
            while not inner & 1 and inner:
                inner, last = inner >> 1, last >> 1
        else:
            computed = node_hash(computed, sibling)
        inner, last = inner >> 1, last >> 1
    if last != 0 or computed != root:
        raise InvalidProof(
            f"the proof does not lead from leaf {index} to the root of {size}", field="proof"
        )


def verify_consistency(
    old: int, new: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes
) -> None:
    """Verify that the newer tree begins with the older one (RFC 9162 section 2.1.4.2).

    Raises:
        InvalidProof: it does not, as far as this proof shows.
    """
    if not 0 < old <= new:
        raise InvalidProof(f"no tree of {new} can begin with one of {old}", field="proof")
    if old == new:
        if proof or old_root != new_root:
            raise InvalidProof(f"two different trees have size {new}", field="proof")
        return
    path = list(proof)
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    if not path:
        raise InvalidProof("the consistency proof is empty", field="proof")
    inner, last = old - 1, new - 1
    while inner & 1:
        inner, last = inner >> 1, last >> 1
    older = newer = path[0]
    for sibling in path[1:]:
        if last == 0:
            raise InvalidProof("the consistency proof is too long", field="proof")
        if inner & 1 or inner == last:
            older, newer = node_hash(sibling, older), node_hash(sibling, newer)
            while not inner & 1 and inner:
                inner, last = inner >> 1, last >> 1
        else:
            newer = node_hash(newer, sibling)
        inner, last = inner >> 1, last >> 1
    if last != 0 or older != old_root or newer != new_root:
        raise InvalidProof(
            f"the tree of {new} does not begin with the tree of {old}", field="proof"
        )


class Frontier:
    """The right edge of a growing tree: the roots of its complete subtrees, left to right."""

    def __init__(self, size: int = 0, hashes: Sequence[bytes] = ()) -> None:
        self.size = size
        self._edge = [(*node, value) for node, value in zip(subtrees(0, size), hashes, strict=True)]

    def add(self, value: bytes) -> list[tuple[Node, bytes]]:
        """Append a leaf hash. Return the nodes that it completes, its own first."""
        level, index = 0, self.size
        self.size += 1
        complete = [((level, index), value)]
        while self._edge and self._edge[-1][0] == level:
            value = node_hash(self._edge.pop()[2], value)
            level, index = level + 1, index >> 1
            complete.append(((level, index), value))
        self._edge.append((level, index, value))
        return complete

    @property
    def root(self) -> bytes:
        return _fold([value for *_, value in self._edge]) if self._edge else EMPTY_ROOT


def _fold(hashes: Sequence[bytes]) -> bytes:
    computed = hashes[-1]
    for left in reversed(hashes[:-1]):
        computed = node_hash(left, computed)
    return computed


def _split(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << ((size - 1).bit_length() - 1)


def _subproof(old: int, start: int, end: int, whole: bool) -> list[Range]:
    """RFC 6962 section 2.1.2; ``whole``: the verifier knows the root of this subtree."""
    size = end - start
    if old == size:
        return [] if whole else [(start, end)]
    middle = _split(size)
    if old <= middle:
        return [*_subproof(old, start, start + middle, whole), (start + middle, end)]
    return [*_subproof(old - middle, start + middle, end, False), (start, start + middle)]
