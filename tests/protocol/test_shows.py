"""What a result shows: claims from verdicts, and the table of trust levels."""

from pathlib import Path
from typing import Any

import pytest

from bench_protocol.trust import shows, trust_levels
from bench_protocol.trust.omissions import Omissions
from bench_protocol.trust.shows import Check, Claim, Facts

METHOD = (Path(__file__).parents[2] / "docs" / "methodology.md").read_text()
NAMES = [name for row in shows.ROWS for name in row.checks]


def verdict(check: str, **changes: Any) -> dict[str, Any]:
    passed = {"check": check, "passed": True, "checked": True, "sentence": f"{check} said so"}
    return {**passed, "figures": {}, **changes}


def facts(level: int | None = 3, **changes: Any) -> Facts:
    fields = {name: changes.pop(name) for name in [*changes] if name in Facts.__annotations__}
    verdicts = [verdict(name, **changes.get(name, {})) for name in NAMES]
    defaults = {
        "status": "measured",
        "trust_level": level,
        "device": "cpu",
        "precision": "float32",
        "verdicts": tuple(verdicts),
        "omissions": Omissions(0, 0, 0, ()),
    }
    return Facts(**{**defaults, **fields})


def found(facts: Facts) -> dict[str, Claim]:
    return {one.what: one for one in shows.of(facts)}


def statuses(facts: Facts) -> dict[str, str]:
    return {what: one.status for what, one in found(facts).items()}


def test_level_3_shows_the_training_and_neither_speed_nor_hardware() -> None:
    said = found(facts())
    left = {what for what, one in said.items() if one.status != "holds"}
    assert left == {"speed", "hardware", "versions", "energy", "reproduced"}
    assert said["session"].assurance == "third_party"
    assert said["signature"].assurance == "self_attested"
    assert said["speed"].status == said["hardware"].status == "not_checked"
    assert found(facts(4))["reproduced"].assurance == "reproduced"


@pytest.mark.parametrize(
    ("figures", "status"),
    [
        ({"verdict": "pending"}, "pending"),
        ({"verdict": "not_drawn"}, "not_checked"),
        ({"verdict": "self_seeded"}, "not_checked"),
        ({}, "does_not_hold"),
    ],
)
def test_a_failed_check_decides_the_claim(figures: dict[str, str], status: str) -> None:
    said = found(facts(2, witness={"passed": False, "figures": figures}))
    session = said.pop("session")
    assert (session.status, session.assurance) == (status, None)
    assert session.sentence == "witness said so"
    others = {what: one for what, one in statuses(facts(2)).items() if what != "session"}
    assert {what: one.status for what, one in said.items()} == others


def test_a_wrong_check_is_named_before_a_pending_one() -> None:
    pending = {"passed": False, "figures": {"verdict": "pending"}}
    said = found(facts(2, witness=pending, parameter_count={"passed": False}))
    assert said["session"].sentence == "parameter_count said so"
    assert said["session"].status == "does_not_hold"


def test_nothing_to_compare_with_is_not_checked() -> None:
    unchecked = {"checked": False}
    assert statuses(facts(accuracy=unchecked))["learning"] == "holds"
    assert statuses(facts(accuracy=unchecked, falling_loss=unchecked))["learning"] == "not_checked"


@pytest.mark.parametrize("checked", [True, False])
def test_the_speed_of_the_readings_is_what_the_pace_says(checked: bool) -> None:
    """It may be unknown: on a fast GPU they are short."""
    said = found(facts(pace={"checked": checked}))["session"]
    assert (said.status, said.sentence[-12:]) == ("holds", "pace said so")
    assert "speed" not in said.sentence


def test_a_session_that_only_a_wide_range_checked_says_so_and_so_does_the_level() -> None:
    banded = {"figures": {"verdict": shows.WIDE_RANGE}}
    assert statuses(facts(witness=banded))["session"] == "not_checked"
    assert statuses(facts(witness=banded, steps={"passed": False}))["session"] == "does_not_hold"
    said = "with the losses of its session checked by a wide range, not recomputed"
    assert shows.level_words(facts(3, witness=banded)) == f"level 3 of 4, {said}"
    assert shows.level_words(facts(4, witness=banded)) == f"level 4 of 4, {said}"
    assert shows.level_words(facts(3)) == "level 3 of 4"
    assert shows.level_words(facts(2, witness=banded)) == "level 2 of 4"
    assert shows.level_words(facts(None, status="pending", verdicts=())) is None


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "holds"),
        ({"checked": False}, "not_checked"),
        ({"figures": {"verdict": shows.WIDE_RANGE}}, "not_checked"),
        ({"passed": False, "figures": {"verdict": "unverified"}}, "not_checked"),
        ({"passed": False, "figures": {"verdict": "pending"}}, "pending"),
        ({"passed": False, "figures": {"verdict": "wrong_result"}}, "does_not_hold"),
    ],
)
def test_what_a_check_says_by_itself(changes: dict[str, Any], status: str) -> None:
    assert Check.of(verdict("witness", **changes)).status == status


def test_a_window_that_began_late_contradicts_nothing() -> None:
    late = {"passed": False, "figures": {"verdict": "shorter"}}
    assert statuses(facts(2, window=late))["session"] == "not_checked"
    wrong = {"passed": False, "figures": {"verdict": "longer"}}
    assert statuses(facts(2, window=wrong))["session"] == "does_not_hold"


def test_the_senders_word_is_said_to_be_that_and_can_be_contradicted() -> None:
    assert statuses(facts(placement={"passed": False}))["hardware"] == "does_not_hold"
    assert statuses(facts(2, energy={"passed": False}))["energy"] == "does_not_hold"
    for row in ("hardware", "versions", "energy"):
        assert found(facts())[row].status == "not_checked"
        assert "the sender's word" in found(facts())[row].sentence
    nothing = found(facts(energy={"checked": False}))["energy"]
    assert (nothing.status, nothing.sentence) == ("not_checked", "energy said so")


@pytest.mark.parametrize(
    ("status", "rest"),
    [("pending", "pending"), ("unknown", "not_checked"), ("failed", "not_checked")],
)
def test_without_verdicts_only_signature_and_log_hold(status: str, rest: str) -> None:
    said = statuses(facts(None, status=status, verdicts=(), omissions=None))
    assert [what for what, one in said.items() if one == "holds"] == ["signature", "log"]
    assert said["session"] == said["reproduced"] == rest
    assert statuses(facts(None, status=status, verdicts=(), logged=False))["log"] == "not_checked"


def test_what_the_next_level_needs() -> None:
    assert shows.level_needs(facts(1, challenge={"passed": False})) == "level 2: challenge said so"
    pending = {"passed": False, "figures": {"verdict": "pending"}}
    assert "not recomputed" in str(shows.level_needs(facts(2, witness=pending)))
    doubt = facts(2, own_product={"passed": False})
    assert shows.level_needs(doubt) == "level 3: own_product said so"
    same = {"passed": False, "sentence": "twice"}
    assert shows.level_needs(facts(2, own_product=same, energy=same)) == "level 3: twice"
    assert "two or more other confirmed owners" in str(shows.level_needs(facts(3)))
    assert shows.level_needs(facts(4)) is None
    assert shows.level_needs(facts(None, status="pending", verdicts=())) is None


@pytest.mark.parametrize(
    ("level", "device", "precision", "says"),
    [
        (2, "metal", "mixed_float16", "level 2 of 4: level 3 is not yet checkable in mixed_fl"),
        (2, "cuda", "tf32", "level 2 of 4"),
        (3, "cuda", "mixed_bfloat16", "level 3 of 4"),
        (2, "cpu", "tf32", "level 2 of 4: level 3 is not yet checkable in tf32 on CPU"),
        (2, "cuda", "float32", "level 2 of 4"),
        (2, "cpu", "float32", "level 2 of 4"),
        (1, "metal", "mixed_float16", "level 1 of 4"),
        (3, "cuda", "float32", "level 3 of 4"),
        (4, "metal", "float32", "level 4 of 4, with derived limits"),
        (3, "cpu", "mixed_bfloat16", "level 3 of 4"),
    ],
)
def test_a_level_says_how_its_limits_were_found(
    level: int, device: Any, precision: Any, says: str
) -> None:
    words = trust_levels.words(level, device, precision)
    assert words.startswith(says)
    assert ("derived" in words) == ("derived" in says)
    assert ("checkable" in words) == ("checkable" in says)


def test_limits_that_are_too_coarse_are_named() -> None:
    coarse = facts(2, device="metal", precision="mixed_float16", witness={"passed": False})
    assert "not yet checkable in mixed_float16 on Metal" in str(shows.level_needs(coarse))
    fine = facts(2, device="cuda", witness={"passed": False})
    assert shows.level_needs(fine) == "level 3: witness said so"


def test_levels_are_numbered_and_the_method_shows_the_same_table() -> None:
    assert [level.number for level in trust_levels.LEVELS] == [0, 1, 2, 3, 4]
    for level in trust_levels.LEVELS:
        cells = (str(level.number), level.name, level.words, level.needs, level.still)
        assert f"| {' | '.join(cells)} |\n" in METHOD


def test_the_limit_of_session_and_speed_is_said_once() -> None:
    said = [one.sentence for one in shows.of(facts(3)) if "rewritten agent" in one.sentence]
    assert len(said) == 1
