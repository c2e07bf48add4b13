"""The Merkle tree compared with RFC 6962's definition and public test vectors."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_protocol.base.errors import InvalidProof
from bench_protocol.signing import merkle, tiles

# transparency-dev/merkle, testdata/ (Apache-2.0).
VECTORS = json.loads((Path(__file__).parents[1] / "golden" / "rfc6962_proofs.json").read_text())
LEAVES = [merkle.leaf_hash(b"%d" % number) for number in range(700)]


def mth(hashes: list[bytes]) -> bytes:
    """RFC 6962 section 2.1, word for word."""
    if not hashes:
        return hashlib.sha256(b"").digest()
    if len(hashes) == 1:
        return hashes[0]
    k = max(1 << i for i in range(20) if 1 << i < len(hashes))
    return hashlib.sha256(b"\x01" + mth(hashes[:k]) + mth(hashes[k:])).digest()


def grown(size: int) -> dict[merkle.Node, bytes]:
    frontier, nodes = merkle.Frontier(), {}
    for leaf in LEAVES[:size]:
        nodes.update(frontier.add(leaf))
    return nodes


def raw(text: str | None) -> bytes:
    return base64.b64decode(text or "")


def path(case: dict[str, Any]) -> list[bytes]:
    return [raw(item) for item in case["proof"] or ()]


def holds(case: dict[str, Any], check: Any, *arguments: Any) -> None:
    if case["wantErr"]:
        with pytest.raises(InvalidProof):
            check(*arguments)
    else:
        check(*arguments)


@pytest.mark.parametrize("case", VECTORS["inclusion"], ids=lambda case: case["file"])
def test_public_vectors_of_inclusion(case: dict[str, Any]) -> None:
    leaf, index, size = raw(case["leafHash"]), case["leafIdx"], case["treeSize"]
    holds(case, merkle.verify_inclusion, leaf, index, size, path(case), raw(case["root"]))


@pytest.mark.parametrize("case", VECTORS["consistency"], ids=lambda case: case["file"])
def test_public_vectors_of_consistency(case: dict[str, Any]) -> None:
    sizes = case["size1"], case["size2"]
    roots = raw(case["root1"]), raw(case["root2"])
    holds(case, merkle.verify_consistency, *sizes, path(case), *roots)


def test_the_root_of_no_leaf() -> None:
    assert merkle.Frontier().root == merkle.EMPTY_ROOT == mth([])


@given(st.integers(0, 600))
def test_a_frontier_continues_from_stored_nodes(size: int) -> None:
    nodes = grown(size)
    resumed = merkle.Frontier(size, [nodes[node] for node in merkle.subtrees(0, size)])
    resumed.add(LEAVES[size])
    assert resumed.root == mth(LEAVES[: size + 1])
    assert not size or merkle.range_hash(nodes, 0, size) == mth(LEAVES[:size])


@given(st.integers(1, 600), st.data())
def test_every_leaf_is_proved_and_no_other(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    nodes, root = grown(size), mth(LEAVES[:size])
    proof = [merkle.range_hash(nodes, *r) for r in merkle.inclusion_ranges(index, size)]
    merkle.verify_inclusion(LEAVES[index], index, size, proof, root)
    other = data.draw(st.integers(0, 650).filter(lambda n: n != index))
    with pytest.raises(InvalidProof):
        merkle.verify_inclusion(LEAVES[other], index, size, proof, root)
    with pytest.raises(InvalidProof):
        merkle.verify_inclusion(LEAVES[index], other, size, proof, root)


@given(st.integers(1, 600), st.data())
def test_growth_is_proved_and_rewriting_is_not(old: int, data: st.DataObject) -> None:
    new = data.draw(st.integers(old, 650))
    nodes = grown(new)
    proof = [merkle.range_hash(nodes, *r) for r in merkle.consistency_ranges(old, new)]
    old_root, new_root = mth(LEAVES[:old]), mth(LEAVES[:new])
    merkle.verify_consistency(old, new, proof, old_root, new_root)
    changed = data.draw(st.integers(0, old - 1))
    rewritten = mth([*LEAVES[:changed], LEAVES[-1], *LEAVES[changed + 1 : old]])
    with pytest.raises(InvalidProof):
        merkle.verify_consistency(old, new, proof, rewritten, new_root)


@pytest.mark.parametrize(
    ("index", "width", "text"),
    [(0, 256, "000"), (0, 12, "000.p/12"), (1234067, 256, "x001/x234/067"), (999, 1, "999.p/1")],
)
def test_tile_numbers(index: int, width: int, text: str) -> None:
    assert tiles.tile_number(index, width) == text
    assert tiles.parse_tile_number(text) == (index, width)


@pytest.mark.parametrize(
    "text", ["", "0", "0000", "x000/001", "000.p/0", "000.p/256", "000.p/01", "001/002", "../000"]
)
def test_a_tile_has_one_number(text: str) -> None:
    with pytest.raises(InvalidProof):
        tiles.parse_tile_number(text)


def test_tiles_of_the_specification() -> None:
    """tlog-tiles: the example of 70,000 entries, and that of 256."""
    assert tiles.tile_address(0, 272, 70_000) == "/tile/0/272"
    assert tiles.tile_address(0, 273, 70_000) == "/tile/0/273.p/112"
    assert tiles.tile_address(1, 1, 70_000) == "/tile/1/001.p/17"
    assert tiles.tile_address(2, 0, 70_000) == "/tile/2/000.p/1"
    assert tiles.tile_address(1, 0, 256) == "/tile/1/000.p/1"
    assert [*tiles.entries_addresses(300)] == ["/tile/entries/000", "/tile/entries/001.p/44"]


@given(st.integers(1, 700), st.data())
def test_nodes_come_out_of_tiles(size: int, data: st.DataObject) -> None:
    old = data.draw(st.integers(1, size))
    nodes = grown(size)

    def fetch(address: str) -> bytes:
        level, number = address.removeprefix("/tile/").split("/", 1)
        index, width = tiles.parse_tile_number(number)
        height = tiles.HEIGHT * int(level)
        return b"".join(nodes[height, index * tiles.WIDTH + at] for at in range(width))

    wanted = merkle.nodes_of([(0, size), *merkle.consistency_ranges(old, size)])
    assert tiles.fetch_nodes(fetch, size, wanted) == {node: nodes[node] for node in wanted}
    with pytest.raises(InvalidProof, match="does not hold"):
        tiles.fetch_nodes(lambda address: fetch(address)[:-1], size, wanted)


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_entry_bundles(entries: list[bytes]) -> None:
    bundle = tiles.encode_entries(entries)
    assert tiles.decode_entries(bundle) == entries
    if bundle and bundle[-1:] != b"\x00" and entries[-1]:
        with pytest.raises(InvalidProof):
            tiles.decode_entries(bundle[:-1])
