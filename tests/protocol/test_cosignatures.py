"""Cosignatures of checkpoints: keys, signed messages, and what must be refused."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes import results
from tests.fakes.log import KEY, ORIGIN, Log
from tests.fakes.witness import Witness

from bench_protocol.base.errors import InvalidProof
from bench_protocol.signing import cosignatures, note
from bench_protocol.signing.cosignatures import WitnessKey, parse_witness_key
from bench_protocol.signing.receipts import parse_checkpoint

AT = 1_795_237_200


def checkpoint() -> str:
    log = Log()
    log.add(results.sealed(results.make_result()))
    return log.checkpoint(1)


NOTE = checkpoint()
TEXT = note.open_note(NOTE, note.note_key(ORIGIN, KEY))
WITNESS = Witness(note.note_key(ORIGIN, KEY), at=AT)


def line(key: WitnessKey, signature: bytes, at: int = AT) -> str:
    raw = key.hint + at.to_bytes(8, "big") + signature
    return f"\u2014 {key.name} {base64.b64encode(raw).decode()}\n"


def test_the_signed_message_is_the_one_of_the_specification() -> None:
    text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    assert cosignatures.message(text, 1679315147) == (
        b"cosignature/v1\ntime 1679315147\nexample.com/behind-the-sofa\n20852163\n"
        b"CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    )


def test_the_examples_of_the_specification_are_parsed() -> None:
    """The keys of these lines are not published: they are of an unknown key, and ignored."""
    example = (
        "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
        "\u2014 example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN"
        "7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
        "\u2014 witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9d"
        "lrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n"
    )
    text, lines = note.split(example)
    assert [one.name for one in lines] == ["example.com/behind-the-sofa", "witness.example.com/w1"]
    assert (len(lines[1].raw), lines[1].raw[:4].hex()) == (4 + 8 + 64, "8d66cf3f")
    assert int.from_bytes(lines[1].raw[4:12], "big") == 1679315147
    assert parse_checkpoint(text).size == 20852163
    assert cosignatures.cosignatures(example, [WITNESS.key]) == ()


def test_a_key_is_written_and_read() -> None:
    key = WITNESS.key
    assert parse_witness_key(str(key)) == key
    raw = b"witness.example/w1\n\x04" + key.public_key
    assert f"+{hashlib.sha256(raw).hexdigest()[:8]}+" in str(key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name",
        "name+00000000+",
        "name+00000000+AAAA",
        str(note.note_key(ORIGIN, KEY)),  # a log's key
        str(WITNESS.key).replace("witness", "witless"),
        str(WitnessKey("w.example", bytes(31))),
        str(WitnessKey("a b", bytes(32))),
    ],
)
def test_a_malformed_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidProof):
        parse_witness_key(text)


def test_a_cosignature_verifies() -> None:
    signed = NOTE + WITNESS.line(TEXT)
    (found,) = cosignatures.cosignatures(signed, [WITNESS.key])
    assert (found.witness, found.at) == (WITNESS.name, AT)
    assert found.line == WITNESS.line(TEXT)
    assert note.open_note(signed, note.note_key(ORIGIN, KEY)) == TEXT


@pytest.mark.parametrize(
    "spoiled",
    [
        line(WITNESS.key, bytes(64)),
        line(WITNESS.key, bytes(63)),
        line(WITNESS.key, b""),
        line(WITNESS.key, bytes(64), at=0),
        WITNESS.line(TEXT.replace("\n1\n", "\n2\n")),
        line(WITNESS.key, WITNESS.private_key.sign(TEXT.encode())),  # no header, no time
    ],
)
def test_a_wrong_line_of_a_known_witness_is_refused(spoiled: str) -> None:
    with pytest.raises(InvalidProof):
        cosignatures.cosignatures(NOTE + spoiled, [WITNESS.key])


@given(st.integers(0, 8 + 64 - 1), st.integers(0, 7))
def test_each_bit_is_signed(at: int, bit: int) -> None:
    head, _, encoded = WITNESS.line(TEXT).rpartition(" ")
    raw = bytearray(base64.b64decode(encoded))
    raw[4 + at] ^= 1 << bit
    spoiled = f"{head} {base64.b64encode(raw).decode()}\n"
    with pytest.raises(InvalidProof):
        cosignatures.cosignatures(NOTE + spoiled, [WITNESS.key])


@pytest.mark.parametrize("answer", ["", "hello", "\u2014 a b", "\u2014 a b\n\n", "- a b\n", "\r\n"])
def test_an_answer_without_signature_lines_is_refused(answer: str) -> None:
    with pytest.raises(InvalidProof):
        cosignatures.lines_of(answer)
