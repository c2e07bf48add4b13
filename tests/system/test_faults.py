"""``make faults``: a short set of its faults is caught by the real agent and server."""

import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.conftest import installed
from tests.evidence.faults import document, honest, proofs, table
from tests.evidence.faults.__main__ import selected
from tests.evidence.faults.conditions import CONDITIONS
from tests.evidence.faults.fault import GROUPS, KNOWS_WHEN, SENDERS_CLOCK, Fault
from tests.evidence.faults.planted import BY_NAME, FAULTS, controls, fault_named
from tests.evidence.faults.run import Check, Outcome
from tests.fakes import seeding
from tests.fakes.results import make_cell, make_complete

from bench_protocol.training import recomputation

ROOT = Path(__file__).parents[2]
# The loop; clock, synchronisation and dropout are long. tests/engines/test_faults.py has faults of
# layers.
SHORT, LONG = ("B3",), ("D1", "B17", "B11", "B12")


@pytest.mark.parametrize("names", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_a_short_set_is_caught(names: Sequence[str]) -> None:
    for name in {fault_named(name).setup.framework for name in names}:
        installed(name)
    done = subprocess.run(
        [sys.executable, "-m", "tests.evidence.faults", "--only", ",".join(names)],
        capture_output=True,
        text=True,
        timeout=280,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    count, cells = len(names), len({fault_named(name).setup for name in names})
    assert last == (
        f"{count} of {count} caught (100.0 %); {count} of {count} slips; "
        f"{cells} of {cells} controls ranked"
    )


def test_there_are_faults_of_every_kind() -> None:
    names = Counter(fault.name for fault in (*FAULTS, *BY_NAME))
    assert max(names.values()) == 1
    assert len(names) >= 60
    assert {fault.group for fault in (*FAULTS, *BY_NAME)} == set(GROUPS)
    assert {control.setup for control in controls()} == {fault.setup for fault in FAULTS}


def test_a_name_that_is_not_planted() -> None:
    assert [fault.name for fault in selected("B1, B17")] == ["B1", "B17"]
    assert selected(None) == FAULTS
    with pytest.raises(SystemExit, match="no fault is named B99; choose of: A1, A2"):
        selected("B1,B99")


def outcome(fault: Fault, *, ranked: bool, worker: str = "measured", trust: int = 3) -> Outcome:
    failed = () if ranked else (Check("steps", "unranked", "too few"),)
    return Outcome(fault, worker, failed, ranked, trust if ranked else 2)


def test_a_ranked_fault_and_an_unranked_control_fail_the_run() -> None:
    fault, other = fault_named("B3"), fault_named("D1")
    control = controls((fault,))[0]
    right = [outcome(control, ranked=True), outcome(fault, ranked=False)]
    assert table.wrong(right) == []
    assert table.summary(right) == ("1 of 1 caught (100.0 %); 1 of 1 slips; 1 of 1 controls ranked")
    wrong = [outcome(control, ranked=False), outcome(fault, ranked=True)]
    assert [line.partition(":")[0] for line in table.wrong(wrong)] == [
        "honest, not ranked", "ranked",
    ]  # fmt: skip
    assert "| B3 | " in table.markdown(wrong)
    assert "| YES | 3 |" in table.markdown(wrong)
    # Outside of the timed loop too, and with a doubt.
    assert table.wrong([outcome(other, ranked=True, trust=2)]) == [
        "ranked: D1, the worker's clock at half speed (torch tuned, mnist-dense), trust 2"
    ]
    # No check can see a cheat that knows when it is read.
    cheat = next(one for one in FAULTS if one.unseen == KNOWS_WHEN)
    assert table.wrong([outcome(cheat, ranked=True, trust=2)]) == []
    assert table.summary([outcome(cheat, ranked=True, trust=3)]) == (
        "0 of 1 caught (0.0 %); 0 of 1 cheats; 1 ranked as honest runs are"
    )
    lie = next(one for one in FAULTS if one.unseen == SENDERS_CLOCK)
    assert table.wrong([outcome(lie, ranked=True, trust=3)]) == []
    caught = [outcome(one, ranked=False) for one in FAULTS if one.slip]
    assert table.wrong([*caught[:19], outcome(cheat, ranked=True, trust=2)]) == []
    too_few = table.wrong([*caught[:18], outcome(cheat, ranked=True, trust=2)])
    assert too_few == ["fewer than 95 %: 18 of 19 caught"]
    crashed = Outcome(fault, "crashed (timing)", (), ranked=False, trust=1)
    assert not crashed.caught
    # A worker that crashes over what a check names is the fault's own end.
    assert outcome(fault, ranked=False, worker="crashed (timing)").caught
    assert table.wrong([crashed]) == ["crashed: B3, a block trains only its first step"]


def test_each_part_of_a_witness_is_a_proof_of_its_own() -> None:
    right = make_complete(make_cell("fashion-mlp"))
    job, measured = recomputation.job(right), right.measurement
    assert job is not None
    assert measured is not None
    assert measured.witness is not None
    told, said = measured.witness, seeding.invented_for(job)
    kinds = ["deep", "short", "first", "masks", "masks"]
    assert list(proofs.of_witness(right, said)) == []

    def found(**fields: Any) -> list[str]:
        wrong = measured.model_copy(update={"witness": told.model_copy(update=fields)})
        return list(proofs.of_witness(seeding.with_measurement(right, wrong), said))

    for number, kind in enumerate(kinds):
        readings = list(told.readings)
        same = {"movements": readings[-1].movements, "loss": 9.0 * (readings[number].loss or 1)}
        readings[number] = readings[number].model_copy(update=same)
        expected = [f"{kind} reading"]
        assert found(readings=tuple(readings)) == expected, kind
    assert found(start_loss=9.0) == ["start loss"]
    assert found(movements=()) == ["movements in the timing"]


def outcomes_of(page: str) -> list[Outcome]:
    honest = {str(control.setup): control for control in controls()}
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.count(" | ") == 6]
    return [
        Outcome(
            honest[setup] if name == "control" else fault_named(name),
            "measured",
            (),
            ranked=ranked.lower() == "yes",
            trust=int(trust),
            proofs=() if proofs == "nothing" else tuple(proofs.split(", ")),
        )
        for name, _, _, setup, proofs, ranked, trust in rows
        if name not in ("fault", "---")
    ]


def test_the_page_of_the_last_run() -> None:
    text = (ROOT / "docs" / "faults.md").read_text("utf-8")
    assert text.startswith(document.HEAD.strip())
    outcomes = outcomes_of(text)
    if document.NO_RUN in text:  # then it claims no figure
        assert outcomes == []
        assert "**" not in text.removeprefix(document.HEAD.strip())
        return
    assert {one.fault.name for one in outcomes if not one.honest} == {one.name for one in FAULTS}
    assert {one.fault.setup for one in outcomes if one.honest} == {one.setup for one in controls()}
    added = re.findall(r"(\w+) was added and planted afterwards", text)
    assert f"{len(outcomes) - len(added)} runs of one repeat each" in text
    assert table.markdown(outcomes) in text
    assert table.by_group(outcomes) in text
    for row in table.by_proof(outcomes, {}).splitlines()[2:]:
        assert row.removesuffix("| - | - |") in text
    assert f"**{table.summary(outcomes)}.**" in text
    assert table.wrong(outcomes) == []
    for one in table.uncaught(outcomes):
        assert f"* {one.fault.name}, {one.fault.words}: " in text


def test_honest_repeats_are_of_every_condition_workload_and_recipe() -> None:
    planned = honest.tasks(200)
    assert sum(task.repeats for task in planned) >= 200
    assert len(CONDITIONS) == 10
    for condition in CONDITIONS:
        some = [task for task in planned if task.condition == condition]
        assert sum(task.repeats for task in some) >= 20
        for values in ({task.workload for task in some}, {task.recipe for task in some}):
            assert len(values) == 3
    repeats = [Counter[str](), Counter[str]()]
    for task in planned:
        for counted, name in zip(repeats, (task.workload, task.recipe), strict=True):
            counted[name] += task.repeats
    assert all(max(each.values()) <= 1.3 * min(each.values()) for each in repeats)
    assert {task.recipe for task in honest.tasks(40)} == set(honest.RECIPES)


def test_an_ended_run_prints_the_table_of_what_it_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGTERM raises SystemExit. Agents that run are killed, and no result is waited for."""
    printed, ended = threading.Event(), threading.Event()

    def line(*arguments: Any) -> str:
        printed.set()
        return "-"

    class Runs:
        def __init__(self, *arguments: Any) -> None:
            pass

        def __call__(self, task: honest.Task) -> list[honest.Honest]:
            if task.condition is CONDITIONS[0]:
                return [honest.Honest(task, name, "ranked") for name in honest.FRAMEWORKS]
            if task.condition is CONDITIONS[1]:
                printed.wait(60)
                raise SystemExit(143)
            ended.wait(60)
            return []

        def end(self) -> None:
            ended.set()

    monkeypatch.setattr(honest, "Runs", Runs)
    monkeypatch.setattr(honest, "line", line)
    monkeypatch.setattr(honest, "served", lambda folder: nullcontext("http://server"))
    with pytest.raises(SystemExit):
        honest.run(40, 2)
    said = capsys.readouterr().out
    assert "| nothing special | 4 | 4 | 0 | 0 | 0 | 0.0 % (0.0 to 49.0) |" in said
    assert ended.is_set()


def test_the_share_of_refused_repeats_has_an_interval() -> None:
    """Of 36 repeats 11 were refused in an audit: 18 to 47 %."""
    assert honest.share(0, 200) == "0.0 % (0.0 to 1.9)"
    assert honest.share(11, 36) == "30.6 % (18.0 to 46.9)"
    tasks = honest.tasks(40)
    outcomes = [honest.Honest(task, name, "ranked") for task in tasks for name in honest.FRAMEWORKS]
    first, *_, last = honest.rows([replace(outcomes[0], kind="refused"), *outcomes[1:]])
    assert first == ("nothing special", "4", "3", "0", "0", "1", "25.0 % (4.6 to 69.9)")
    assert last[:2] == ("all", str(len(outcomes)))
