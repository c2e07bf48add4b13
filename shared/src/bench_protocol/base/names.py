"""Names that people read and that pages are named after: nothing unseen, letters of one script.

A name that looks like another one is refused, so that nobody passes for somebody else: scripts of
everyday use (UAX 31, table 5) on Unicode's level "highly restrictive" (UTS 39), which lets Latin
letters stand beside Chinese, Japanese or Korean ones. One exception: Latin model numbers stand
beside Cyrillic words. A model number whose letters all look Latin has to be written in those.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

# As members of a character class: what is invisible or reorders text. Unicode's
# Default_Ignorable_Code_Point, line separators, the blank of Braille, marks of annotations.
UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(f"[{UNSEEN}]")
LONGEST = 200
LATIN, CJK, CYRILLIC = "LATIN", "CJK", "CYRILLIC"
DIGITS = frozenset("0123456789")
# The first words of the names of characters; CJK is Han.
SCRIPTS = frozenset(
    "ARABIC ARMENIAN BENGALI BOPOMOFO CJK CYRILLIC DEVANAGARI ETHIOPIC GEORGIAN GREEK GUJARATI "  # noqa: SIM905
    "GURMUKHI HANGUL HEBREW HIRAGANA KANNADA KATAKANA KHMER LAO LATIN MALAYALAM MYANMAR ORIYA "
    "SINHALA TAMIL TELUGU THAANA THAI TIBETAN".split()
)
# What UTS 39's level "highly restrictive" lets a name have together.
TOGETHER = tuple(
    {LATIN, CJK, *more} for more in (["HIRAGANA", "KATAKANA"], ["HANGUL"], ["BOPOMOFO"])
)
# Of these scripts, what looks like Latin letters: strokes, a ring, a circle.
STROKES = frozenset("\u4e28\u3007\u1175\u110b")
# Cyrillic, Greek and Armenian letters that look like Latin ones.
LOOK_LATIN = frozenset("АВЕЅІЈКМНОРСТУХҮӀԌԜаеѕіјорсухһӏԁԛԝѵүΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυϲϳχՕՏՍԼօոսհցզյ")


class Fault(NamedTuple):
    """What is wrong with a name, as the end of a sentence about it, and the fix."""

    problem: str
    fix: str


def unseen(text: str) -> Fault | None:
    """The first character of a text that is invisible or reorders it."""
    match = _UNSEEN.search(text)
    if match is None:
        return None
    problem = f"has U+{ord(match[0]):04X}, which is invisible or reorders text"
    return Fault(problem, "leave it out")


def without_unseen(text: str) -> str:
    return _UNSEEN.sub("", text)


def normal(name: str) -> str:
    """The one spelling of a name: Unicode's form NFKC, without trade marks, with plain dashes and
    single spaces."""
    text = unicodedata.normalize("NFKC", re.sub("[®™©]", " ", name))
    return re.sub(r"\s+", " ", re.sub("[\u2010-\u2015\u2212]", "-", text)).strip()


def slug(name: str) -> str:
    """A name as part of an address: letters and digits of any script, and dashes."""
    lower = unicodedata.normalize("NFKC", normal(name).lower())
    return re.sub(" +", "-", _letters(lower).strip())[: 2 * LONGEST] or "unknown"


def fault(name: str) -> Fault | None:
    """Why a name is refused, or None."""
    text = normal(name)
    if found := unseen(name) or unseen(text):
        return found
    for character in text:
        if unicodedata.category(character)[0] in "CS" and character not in "°" and character > "~":
            problem = f"has U+{ord(character):04X}, which is no letter, digit or punctuation"
            return Fault(problem, "leave it out")
    if len(text) > LONGEST:
        return Fault(f"has {len(text)} characters in the form NFKC, above {LONGEST}", "shorten it")
    return _mixture(text)


def _mixture(text: str) -> Fault | None:
    """The fault of the scripts of a name's words."""
    of_words = {word: set(map(_script, _letters(word))) - {""} for word in text.split()}
    words = {word: found for word, found in of_words.items() if found}
    scripts = frozenset[str]().union(*words.values())
    if odd := scripts - SCRIPTS:
        problem = f"has letters of no script in everyday use ({_word(min(odd))})"
        return Fault(problem, "write them in another script")
    latin = [word for word in words if LOOK_LATIN >= set(filter(str.isalpha, word)) > set()]
    mixed = len(scripts) > 1 and not any(scripts <= some for some in TOGETHER)
    if (mixed and (latin or not _are_models(words))) or (LATIN in scripts and STROKES & set(text)):
        problem = f"mixes letters of {' and '.join(map(_word, sorted(scripts)))}"
        return Fault(problem, "write it in letters of one script")
    if len(latin) < len(words):  # a Cyrillic model number may have its double in Latin letters
        latin = [word for word in latin if words[word] == {CYRILLIC} and DIGITS & set(word)]
    if latin:
        problem = f"has only {_word(min(words[latin[0]]))} letters that look like Latin ones"
        return Fault(problem, "write it in Latin letters, or add a word")
    return None


def _are_models(words: Mapping[str, set[str]]) -> bool:
    """Whether all words are Cyrillic or Latin model numbers."""
    return all(
        found == {CYRILLIC} or (found == {LATIN} and DIGITS & set(word))
        for word, found in words.items()
    )


def _letters(text: str) -> str:
    """Letters, their marks and numbers; spaces for all else."""
    return "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in text)


def _script(character: str) -> str:
    """The script of a letter, mark or number; empty for those of all scripts."""
    if character in DIGITS or character == " ":
        return ""
    first = re.split("[ -]", unicodedata.name(character, "UNNAMED"))[0]
    if first == "IDEOGRAPHIC":
        return CJK
    if first == LATIN and (
        unicodedata.category(character) == "Lo"
        or "\u024f" < character < "\u1e00"
        or character > "\u1eff"
    ):
        return "PHONETIC"
    return "" if first == "COMBINING" else first


def _word(script: str) -> str:
    return script if script == CJK else script.capitalize()
