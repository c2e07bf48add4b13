"""Verdicts of checks: a finding for people and programs, and its effect."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import orjson

from ..errors import DamagedDatabase

Made = TypeVar("Made")
Effect = Literal["unranked", "quarantined", "stale", "doubtful"]


@dataclass(frozen=True)
class Finding:
    """The finding of a check: ``sentence`` is for people, ``figures`` are the numbers in it."""

    passed: bool
    sentence: str
    figures: dict[str, Any]
    checked: bool = True

    def as_text(self) -> str:
        return orjson.dumps(vars(self)).decode()

    @classmethod
    def from_text(cls, text: str) -> "Finding":
        return _stored(text, lambda found: cls(**found))


EffectOf = Callable[[Finding], Effect]


@dataclass(frozen=True)
class CheckVerdict:
    """The finding of one check, and the effect of failing it (docs/protocol.md, Checks)."""

    check: str
    passed: bool
    effect: Effect
    sentence: str
    figures: dict[str, Any]
    checked: bool = True

    @classmethod
    def of(cls, check: str, effect: Effect | EffectOf, finding: Finding) -> "CheckVerdict":
        if not isinstance(effect, str):
            effect = effect(finding)
        return cls(
            check, finding.passed, effect, finding.sentence, finding.figures, finding.checked
        )


def as_text(verdicts: Iterable[CheckVerdict]) -> str:
    return orjson.dumps([vars(verdict) for verdict in verdicts]).decode()


def from_text(text: str) -> tuple[CheckVerdict, ...]:
    return _stored(text, lambda found: tuple(CheckVerdict(**verdict) for verdict in found))


def _stored(text: str, made: Callable[[Any], Made]) -> Made:
    try:
        return made(orjson.loads(text))
    except (orjson.JSONDecodeError, TypeError) as error:
        raise DamagedDatabase(f"a finding: {error}") from error
