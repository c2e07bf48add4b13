"""Names that people read and that pages are named after: nothing unseen, letters of one script.

A name that looks like another one is refused, so that nobody passes for somebody else: single
scripts of everyday use, and Chinese, Japanese or Korean words beside Latin ones (Unicode's UTS 39,
"highly restrictive"; the scripts are those of UAX 31, table 5).
"""

import re
import unicodedata
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
LATIN, CJK = "LATIN", "CJK"
# The first words of the names of characters.
CHINESE_JAPANESE_KOREAN = "CJK IDEOGRAPHIC BOPOMOFO HIRAGANA KATAKANA HANGUL".split()  # noqa: SIM905
SCRIPTS = frozenset(
    "ARABIC ARMENIAN BENGALI CJK CYRILLIC DEVANAGARI ETHIOPIC GEORGIAN GREEK GUJARATI GURMUKHI "  # noqa: SIM905
    "HEBREW KANNADA KHMER LAO LATIN MALAYALAM MYANMAR ORIYA SINHALA TAMIL TELUGU THAANA THAI "
    "TIBETAN".split()
)
# Cyrillic, Greek and Armenian letters that look like Latin ones.
LOOK_LATIN = frozenset("АВЕЅІЈКМНОРСТУХҮԌԜаеѕіјорсухһӏԁԛԝѵүΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυϲϳχՕՏՍԼօոսհցզյ")


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
    return _mixture([set(map(_script, word)) - {""} for word in _letters(text).split()], text)


def _mixture(words: list[set[str]], text: str) -> Fault | None:
    """The fault of the scripts of a name's words."""
    scripts = set().union(*words)
    if odd := scripts - SCRIPTS:
        problem = f"has letters of no script in everyday use ({_word(min(odd))})"
        return Fault(problem, "write them in another script")
    beside_latin = scripts - {LATIN} if CJK in scripts else scripts
    if len(beside_latin) > 1 or any(len(word) > 1 for word in words):
        problem = f"mixes letters of {' and '.join(map(_word, sorted(scripts)))}"
        return Fault(problem, "write it in letters of one script")
    letters = [character for character in text if character.isalpha()]
    if letters and LOOK_LATIN.issuperset(letters):
        (script,) = scripts
        problem = f"has only {_word(script)} letters that look like Latin ones"
        return Fault(problem, "write it in Latin letters, or add a word")
    return None


def _letters(text: str) -> str:
    """Letters, their marks and numbers; spaces for all else."""
    return "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in text)


def _script(character: str) -> str:
    """The script of a letter, mark or number; empty for those of all scripts."""
    if character in "0123456789":
        return ""
    first = re.split("[ -]", unicodedata.name(character, "UNNAMED"))[0]
    if first in CHINESE_JAPANESE_KOREAN:
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
