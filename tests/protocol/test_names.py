"""Names: what is refused and why, and the slugs of the others."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.protocol.golden_result import PAYLOAD, Place, altered

from bench_protocol.base import names
from bench_protocol.base.errors import InvalidField, ProtocolError
from bench_protocol.base.units import plain_text
from bench_protocol.payload import statement

# Written as escapes: most of these look like something else, which is the point.
BAIKAL, ATHENA = "\u0411\u0430\u0439\u043a\u0430\u043b", "\u0391\u03b8\u03ae\u03bd\u03b1"
APPLE = "\u0410\u0440\u0440\u04cf\u0435"  # in Cyrillic letters
REFUSED = {
    "Cyrillic A": ("\u0410MD Ryzen 9 5950X", "mixes letters of Cyrillic and Latin"),
    "Cyrillic word": ("Apple \u041c2", "mixes letters of Cyrillic and Latin"),
    "Greek letter": ("\u039dVIDIA H200", "mixes letters of Greek and Latin"),
    "Armenian letter": ("Xe\u0578n", "mixes letters of Armenian and Latin"),
    "Han stroke in a word": ("Inte\u4e28 Core", "mixes letters of CJK and Latin"),
    "Han stroke as a word": ("Core \u4e287", "mixes letters of CJK and Latin"),
    "Hangul stroke in a word": ("App\u3163e M2", "mixes letters of Hangul and Latin"),
    "Hangul beside kana": ("\ud504\ub85c \u30d7\u30ed", "mixes letters of Hangul and Katakana"),
    "Cyrillic and Latin in a word": (f"{BAIKAL}-M", "letters of Cyrillic and Latin"),
    "Cyrillic beside a Latin word": (f"{BAIKAL} Pro", "letters of Cyrillic and Latin"),
    "Cyrillic as Latin beside a model": (f"{APPLE} M2", "letters of Cyrillic and Latin"),
    "Greek beside a Latin model": (f"{ATHENA} X2", "letters of Greek and Latin"),
    "Cyrillic model as Latin": (f"{BAIKAL} \u0412\u0415-\u041c1000", "only Cyrillic letters that"),
    "Arabic digit": ("Xeon 6\u0665", "mixes letters of Arabic and Latin"),
    "Cyrillic as Latin": (f"{APPLE} \u041c2", "only Cyrillic letters that look like Latin ones"),
    "one letter as Latin": ("\u041d200", "only Cyrillic letters that look like"),
    "Greek as Latin": ("\u0391\u039c", "only Greek letters that look like"),
    "Cherokee": ("\u13aapple", "no script in everyday use (Cherokee)"),
    "phonetic": ("Ry\u1d22en", "no script in everyday use (Phonetic)"),
    "click": ("Inte\u01c0", "no script in everyday use (Phonetic)"),
    "zero-width space": ("5950X\u200b", "has U+200B, which is invisible"),
    "zero-width joiner": ("59\u200d50X", "has U+200D, which is invisible"),
    "byte order mark": ("\ufeff5950X", "has U+FEFF, which is invisible"),
    "soft hyphen": ("Ry\u00adzen", "has U+00AD, which is invisible"),
    "grapheme joiner": ("Ry\u034fzen", "has U+034F, which is invisible"),
    "variation selector": ("i7-8700\ufe0f", "has U+FE0F, which is invisible"),
    "later variation selector": ("i7\U000e0101", "has U+E0101, which is invisible"),
    "tag": ("i7\U000e0041", "has U+E0041, which is invisible"),
    "Hangul filler": ("i7\u3164", "has U+3164, which is invisible"),
    "blank of Braille": ("i7\u2800", "has U+2800, which is invisible"),
    "override": ("\u202e002H AIDIVN", "has U+202E, which is invisible or reorders"),
    "isolate": ("i7\u2066", "has U+2066, which is invisible or reorders"),
    "mark of direction": ("i7\u061c", "has U+061C, which is invisible or reorders"),
    "private use": ("i7\ue000", "U+E000, which is for private use"),
    "picture": ("H200 \U0001f4a9", "U+1F4A9, which is no letter"),
    "punctuation alone": ("(\u00ae)", "has no letter or digit"),
    "long in NFKC": ("\ufdfa" * 30, "540 characters in the form NFKC, above 200"),
}
# A name, and its slug.
ACCEPTED = {
    "AMD Ryzen 9 5950X": "amd-ryzen-9-5950x",
    "Intel\u00ae Core\u2122 Ultra 9": "intel-core-ultra-9",
    "\uff21\uff2d\uff24 \uff25\uff30\uff39\uff23": "amd-epyc",
    "Neoverse\u2010N1": "neoverse-n1",
    "M\u00fcller\u2013Caf\u0065\u0301 #1": "müller-café-1",
    "\u042d\u043b\u044c\u0431\u0440\u0443\u0441-8\u0421": "эльбрус-8с",
    f"{ATHENA} 2": "αθήνα-2",
    "\u9f99\u82af 3A6000": "龙芯-3a6000",
    "\u9f99\u82af3A5000": "龙芯3a5000",
    "\u9cb2\u9e4f920": "鲲鹏920",
    "\u98de\u817eD2000/8": "飞腾d2000-8",
    "\u30ce\u30fc\u30c8PC X1": "ノートpc-x1",
    "\u5929\u9e85\ud504\ub85cX1": "天麅프로x1",
    f"{BAIKAL}-\u041c BE-M1000": "байкал-м-be-m1000",
    "\u041c\u0426\u0421\u0422 R2000": "мцст-r2000",
    "\u0421\u0430\u0440\u0430 \u041f\u0435\u0442\u0440\u043e\u0432\u0430": "сара-петрова",
    "\u65e5\u672c\u30d7\u30ed\u30bb\u30c3\u30b5\u30fc": "日本プロセッサー",
    "\ud504\ub85c\uc138\uc11c X1": "프로세서-x1",
    "\u092a\u0930\u092e \u0936\u0915\u094d\u0924\u093f": "परम-शक्ति",
    "\u0645\u0639\u0627\u0644\u062c 5": "معالج-5",
}
# The number of such texts in the golden result.
TEXTS = 27
NAMES: list[Place] = [("model",), ("cpu", "brand"), ("gpus", 0, "name"), ("gpus", 1, "mig_profile")]


@pytest.mark.parametrize("kind", REFUSED)
def test_a_name_that_passes_for_another_is_refused(kind: str) -> None:
    name, problem = REFUSED[kind]
    found = names.fault(name)
    assert found is not None
    assert problem in found.problem


@pytest.mark.parametrize("name", ACCEPTED)
def test_letters_of_one_script_stay_in_the_slug(name: str) -> None:
    assert names.fault(name) is None
    assert names.slug(name) == ACCEPTED[name] == names.slug(names.slug(name))


@pytest.mark.parametrize("place", NAMES)
def test_the_refusal_names_field_limit_and_fix(place: Place) -> None:
    field = ("predicate", "machine", *place)
    with pytest.raises(InvalidField) as refused:
        statement.parse_result(altered(field, "\u0410MD"))
    path = ".".join(map(str, field))
    assert refused.value.detail == (
        f"{path}: it mixes letters of Cyrillic and Latin: write it in letters of one script"
    )


def leaves(part: Any, path: Place = ()) -> Iterator[Place]:
    """The places of a document's texts."""
    if isinstance(part, str):
        yield path
    elif isinstance(part, dict | list):
        for step, inner in part.items() if isinstance(part, dict) else enumerate(part):
            yield from leaves(inner, (*path, step))


@pytest.mark.parametrize("character", "\u200b\u202e\u2067\u00a0\u3000\ue000\a\u0378\U00031350")
def test_no_text_hides_anything(character: str) -> None:
    """What is no text of a fixed form is refused with the character's number."""
    named = set()
    for place in leaves(json.loads(PAYLOAD)):
        with pytest.raises(ProtocolError) as refused:
            statement.parse_result(altered(place, f"1{character}2"))
        if f": it has U+{ord(character):04X}, which is" in refused.value.detail:
            assert refused.value.field == ".".join(map(str, place))
            named.add(place[1:])
    for place in NAMES:
        assert ("machine", *place) in named
    assert len(named) == TEXTS
    assert plain_text(f"1{character}2") in ("12", "1 2")
