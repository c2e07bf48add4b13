"""Notes, checkpoints and receipts: the specification's vectors, and invalid ones."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.golden_result import KEY_1, KEY_2

from bench_protocol.base.errors import InvalidProof
from bench_protocol.signing import envelope, merkle, note, receipts

ORIGIN = "log.example/trainmark"
SPEC_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
SALT = bytes(range(32))
LOG = note.note_key(ORIGIN, KEY_1)
ENVELOPE = envelope.read(envelope.seal("application/x", b"payload", KEY_2))


def test_the_verifier_key_of_the_specification() -> None:
    key = note.parse_key(SPEC_KEY)
    assert (key.name, key.hint.hex(), str(key)) == ("example.com/foo", "530d903a", SPEC_KEY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a+b",
        SPEC_KEY.replace("530d", "530e"),
        SPEC_KEY[:-4],
        SPEC_KEY.replace("+A", "+B"),
        "+" + SPEC_KEY,
    ],
)
def test_a_wrong_verifier_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidProof):
        note.parse_key(text)


def test_a_note_with_a_witness_beside_the_log() -> None:
    signed = note.sign("hello\n", ORIGIN, KEY_1)
    witness = note.sign("hello\n", "witness.example", KEY_2).split("\n\n")[1]
    assert note.open_note(signed + witness, LOG) == "hello\n"
    assert note.open_note("hello\n\n" + witness + signed.split("\n\n")[1], LOG) == "hello\n"
    with pytest.raises(InvalidProof, match="not signed by"):
        note.open_note("hello\n\n" + witness, LOG)
    assert note.open_note(note.sign("a\n\nb\n", ORIGIN, KEY_1), LOG) == "a\n\nb\n"


def checkpoint(
    size: int = 1, root: bytes | None = None, origin: str = ORIGIN
) -> receipts.Checkpoint:
    leaf = merkle.leaf_hash(receipts.commitment(SALT, ENVELOPE))
    return receipts.Checkpoint(origin, size, leaf if root is None else root)


def test_checkpoints_and_their_forgeries() -> None:
    signed = checkpoint().signed(KEY_1)
    assert receipts.open_checkpoint(signed, LOG) == checkpoint()
    for wrong in (
        checkpoint().signed(KEY_2),
        signed.replace(f"{ORIGIN}\n1\n", f"{ORIGIN}\n2\n"),
        note.sign(f"{ORIGIN}\n01\n{base64.b64encode(SALT).decode()}\n", ORIGIN, KEY_1),
        note.sign(f"{ORIGIN}\n1\nshort\n", ORIGIN, KEY_1),
        note.sign(f"elsewhere\n1\n{base64.b64encode(SALT).decode()}\n", ORIGIN, KEY_1),
        note.sign(f"{ORIGIN}\n1\n", ORIGIN, KEY_1),
        "",
    ):
        with pytest.raises(InvalidProof):
            receipts.open_checkpoint(wrong, LOG)


@given(st.data())
def test_no_character_of_a_checkpoint_can_be_changed(data: st.DataObject) -> None:
    signed = checkpoint().signed(KEY_1)
    at = data.draw(st.integers(0, len(signed) - 1))
    other = data.draw(st.characters(min_codepoint=33, max_codepoint=0x2015))
    if other == signed[at]:
        return
    try:
        opened = receipts.open_checkpoint(signed[:at] + other + signed[at + 1 :], LOG)
    except InvalidProof:
        return
    # Spare bits of base64 outside of what is signed change nothing.
    assert opened == checkpoint()
    assert at > len(signed) - 6


def test_a_receipt_proves_one_envelope() -> None:
    receipt = receipts.Receipt(0, SALT, (), checkpoint().signed(KEY_1))
    assert receipts.parse_proof(SALT, receipt.proof) == receipt
    with_extra = receipt.proof.replace("index", "extra AAAA\nindex")
    assert receipts.parse_proof(SALT, with_extra) == receipt
    assert receipts.verify_receipt(receipt, ENVELOPE, LOG).size == 1
    other = envelope.read(envelope.seal("application/x", b"payload2", KEY_2))
    with pytest.raises(InvalidProof, match="does not lead"):
        receipts.verify_receipt(receipt, other, LOG)
    resalted = receipts.Receipt(0, bytes(32), (), receipt.checkpoint)
    with pytest.raises(InvalidProof, match="does not lead"):
        receipts.verify_receipt(resalted, ENVELOPE, LOG)


@pytest.mark.parametrize(
    "text",
    ["", "c2sp.org/tlog-proof@v1", "c2sp.org/tlog-proof@v1\nindex 01\n\n", "index 0\n\n",
     "c2sp.org/tlog-proof@v1\nindex 0\nAAAA\n\n", "c2sp.org/tlog-proof@v1\nindex -1\n\n"],
)  # fmt: skip
def test_a_malformed_proof_is_refused(text: str) -> None:
    with pytest.raises(InvalidProof):
        receipts.parse_proof(SALT, text)


def test_a_log_that_shrank_or_forked() -> None:
    small, large = checkpoint(1), checkpoint(2)
    with pytest.raises(InvalidProof, match="had 2 entries and shows 1"):
        receipts.verify_growth(large, small, ())
    with pytest.raises(InvalidProof, match="two different trees have size 1"):
        receipts.verify_growth(small, checkpoint(1, bytes(32)), ())
    receipts.verify_growth(receipts.Checkpoint(ORIGIN, 0, merkle.EMPTY_ROOT), small, ())
