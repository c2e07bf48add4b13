"""Names that people read and that pages are named after: nothing unseen, letters of one script.

A name that looks like another one is refused, so that nobody passes for somebody else: scripts of
everyday use (UAX 31, table 5) on Unicode's level "highly restrictive" (UTS 39), which lets Latin
letters stand beside Chinese, Japanese or Korean ones. One exception: Latin model numbers stand
beside Cyrillic words. A model number whose letters all look Latin has to be written in those.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import NamedTuple

# Of what Python calls printable, as members of a character class. BLANK is invisible: Hangul
# fillers, the blank of Braille, marks and selectors of variants. LATER came after Unicode 14, so
# that Python 3.11 to 3.13 refuse the same characters.
BLANK = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff"
)
LATER = (
    "\u0cf3\u0ece\u2ffc-\u2fff\u31ef\U00010efd-\U00010eff\U0001123f-\U00011241"
    "\U00011b00-\U00011b09\U00011f00-\U00011f59\U0001342f\U00013439-\U00013455\U0001b132"
    "\U0001b155\U0001d2c0-\U0001d2d3\U0001df25-\U0001df2a\U0001e030-\U0001e08f"
    "\U0001e4d0-\U0001e4f9\U0001f6dc\U0001f774-\U0001f776\U0001f77b-\U0001f77f\U0001f7d9"
    "\U0001fa75-\U0001fa77\U0001fa87\U0001fa88\U0001faad-\U0001faaf\U0001fabb-\U0001fabf"
    "\U0001face\U0001facf\U0001fada\U0001fadb\U0001fae8\U0001faf7\U0001faf8\U0002b739"
    "\U0002ebf0-\U0002ee5d\U00031350-\U000323af"
)
_UNSEEN = re.compile(f"[{BLANK}{LATER}]")
_SPACES = re.compile(r"(?:[^\S ]|[\x00-\x1f\x7f-\x9f])+")
INVISIBLE = "invisible or reorders text"
# Why a character is refused, by its category.
REASONS = {
    "Cc": "a control character",
    "Cn": "not assigned by Unicode 14",
    "Co": "for private use",
    "Cs": "half of a character",
    "Zl": "a line break",
    "Zp": "a line break",
    "Zs": "a space other than U+0020",
}
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
    """The first character of a text that shows nothing, looks like a space, reorders the text, or
    is none of Unicode 14."""
    if text.isprintable() and not _UNSEEN.search(text):
        return None
    character = next(c for c in text if not c.isprintable() or _UNSEEN.match(c))
    reason = REASONS.get(unicodedata.category(character), INVISIBLE)
    if re.match(f"[{LATER}]", character):
        reason = REASONS["Cn"]
    return Fault(f"has U+{ord(character):04X}, which is {reason}", "leave it out")


def without_unseen(text: str) -> str:
    """A text that :func:`unseen` accepts: U+0020 for other spaces and control characters."""
    text = _SPACES.sub(" ", text)
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    return _UNSEEN.sub("", "".join(filter(str.isprintable, text)))


def normal(name: str) -> str:
    """The one spelling of a name: Unicode's form NFKC, without trade marks, with plain dashes and
    single spaces."""
    text = unicodedata.normalize("NFKC", re.sub("[®™©]", " ", name))
    return re.sub(r"\s+", " ", re.sub("[\u2010-\u2015\u2212]", "-", text)).strip()


def slug(name: str, usual: Callable[[str], str] | None = None) -> str:
    """A name as part of an address: letters and digits of any script, and dashes.

    Args:
        usual: the punctuation that words have, given them with spaces between. With it, names that
            differ in more than letter case and spaces have two slugs: of those with the same words
            one is as usual, and the others have a digest after two dashes.
    """
    lower = unicodedata.normalize("NFKC", normal(name).lower())
    words = " ".join(_letters(lower).split())
    readable = words.replace(" ", "-")[: 2 * LONGEST] or "unknown"
    if usual is None or usual(words) == lower:
        return readable
    return f"{readable[: 2 * LONGEST - 10]}--{hashlib.sha256(lower.encode()).hexdigest()[:8]}"


def fault(name: str) -> Fault | None:
    """Why a name is refused, or None."""
    text = normal(name)
    if found := unseen(name) or unseen(text):
        return found
    if not any(map(str.isalnum, text)):
        return Fault("has no letter or digit", "write a name")
    for character in text:
        if unicodedata.category(character)[0] == "S" and character not in "°" and character > "~":
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
