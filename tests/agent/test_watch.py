"""``watch``: what is due, what moved, exit codes. Only engine, clock and machine are fake."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.fakes.lab import BUSY, Lab, make_lab

from bench_agent.plan.plan import Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.run import journal


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return make_lab(tmp_path, monkeypatch)


def reasons(said: dict) -> set[str | None]:
    return {cell["due"] for cell in said["cells"]}


def by_recipe(said: dict) -> dict[str, dict]:
    return {cell["cell"]["recipe"]: cell for cell in said["cells"]}


def test_a_slower_driver_is_found_once_after_the_stated_number_of_runs(lab: Lab) -> None:
    first = lab.days(7, "--runs", "3")
    assert [reasons(said) for said in first] == [
        {"0 of 3 runs"}, {"1 of 3 runs"}, {"2 of 3 runs"}, {None}, {None}, {None}, {None}
    ]  # fmt: skip
    assert first[-1]["sentence"] == (
        "nothing is due: neither driver, system nor framework changed since the last run of "
        "2026-03-04."
    )
    lab.driver, lab.step_ns["tuned"] = "580.2", 1_100_000
    since = lab.days(3, "--runs", "3")
    assert reasons(since[0]) == {"driver of GPU 0 570.1 became 580.2"}
    assert since[0]["sentence"] == (
        "2 set-ups: too early to tell, 1 of 3 runs since driver of GPU 0 570.1 became 580.2."
    )
    assert [said["exit_code"] for said in first + since] == [0] * 9 + [1]
    told = since[-1]
    assert told["sentence"].startswith("fashion-mlp, torch cpu tuned takes 1.2")
    assert told["sentence"].endswith(
        "since driver of GPU 0 570.1 became 580.2; 1 set-up: no clear difference since driver of "
        "GPU 0 570.1 became 580.2."
    )
    assert told["moved"] == {"failed": 0, "slower": 1, "faster": 0}
    tuned, naive = by_recipe(told)["tuned"], by_recipe(told)["naive"]
    assert (tuned["verdict_kind"], naive["verdict_kind"]) == ("slower", "no_difference")
    assert tuned["speed_up_low"] < tuned["speed_up"] < tuned["speed_up_high"] < 1
    assert tuned["changed"] == [
        {"name": "machine.gpus.0.driver", "before": "570.1", "after": "580.2"}
    ]
    (again,) = lab.days(1, "--runs", "3")
    assert (again["exit_code"], again["moved"]["slower"]) == (0, 0)
    assert by_recipe(again)["tuned"]["verdict_kind"] == "slower"


def test_a_change_without_effect_shows_no_clear_difference(lab: Lab) -> None:
    lab.days(5)
    lab.torch = "2.10.0"
    said = lab.days(5)
    assert [each["exit_code"] for each in said] == [0] * 5
    assert said[-1]["sentence"] == (
        "2 set-ups: no clear difference since torch 2.9.0 became 2.10.0."
    )


def test_a_faster_framework_is_no_alarm(lab: Lab) -> None:
    lab.days(5)
    lab.torch, lab.step_ns = "2.10.0", {"naive": 1_000_000, "tuned": 500_000}
    said = lab.days(5)[-1]
    assert (said["exit_code"], said["moved"]["faster"]) == (0, 2)
    assert "torch cpu" in said["sentence"]
    assert " is " in said["sentence"]
    assert said["sentence"].endswith("since torch 2.9.0 became 2.10.0; 1 more set-up changed.")


def test_with_too_little_before_nothing_can_be_told(lab: Lab) -> None:
    lab.days(2)
    lab.torch = "2.10.0"
    said = lab.days(5)[-1]
    assert said["sentence"] == ("2 set-ups: too few runs to tell since torch 2.9.0 became 2.10.0.")
    assert {cell["verdict"] for cell in said["cells"]} == {
        "not enough data: needs 3 runs a side, has 5 and 2"
    }


def test_now_measures_all_that_are_missing_and_no_more(lab: Lab) -> None:
    said = lab.document("--now", "--runs", "3")
    assert (said["runs"], lab.stored()) == (3, 6)
    assert said["sentence"] == "2 set-ups: no earlier runs to compare with, 3 of 3 runs."
    lab.torch, lab.step_ns["naive"] = "2.10.0", 2_600_000
    lab.now += timedelta(hours=1)
    assert lab.document("--now", "--runs", "3")["exit_code"] == 1
    assert lab.stored() == 12
    shown = lab.watch("--now", "--runs", "3")
    assert (shown.exit_code, lab.stored()) == (0, 12)


def test_a_week_after_the_last_run_it_measures_again(lab: Lab) -> None:
    lab.days(5)
    lab.now += timedelta(days=6)
    (said,) = lab.days(1)
    assert reasons(said) == {"last run 7 days ago"}
    assert said["sentence"] == "2 set-ups: no new change."
    (said,) = lab.days(1, "--every-days", "0.5")
    assert reasons(said) == {"last run 1 day ago"}


def test_a_machine_that_got_slower_by_itself_is_found_in_its_history(lab: Lab) -> None:
    lab.days(8, "--every-days", "1")
    lab.step_ns["naive"] = 2_300_000
    said = lab.days(8, "--every-days", "1")
    (told,) = [each for each in said if each["exit_code"]]
    assert told["exit_code"] == 1
    assert "fashion-mlp, torch cpu naive takes 1.1" in told["sentence"]
    assert "since 2026-03-10, in the same environment; 1 set-up: no new change" in told["sentence"]
    (change,) = by_recipe(said[-1])["naive"]["changes"]
    assert (change["started"][:10], change["new"]) == ("2026-03-10", False)


def test_a_busy_machine_is_not_measured(lab: Lab) -> None:
    lab.conditions = BUSY
    said = lab.watch()
    assert said.exit_code == 4
    assert said.stdout.startswith("the machine is not idle: the processor was 80 % busy before")
    assert lab.stored() == 0
    assert journal.unfinished(lab.home) is None
    assert lab.document()["not_idle"] == "the processor was 80 % busy before the start"


def test_disturbed_runs_do_not_count_and_are_repeated_a_limited_number_of_times(lab: Lab) -> None:
    lab.disturbed = frozenset({"naive"})
    said = lab.days(8, "--runs", "3", "--every-days", "30")
    naive = by_recipe(said[-1])["naive"]
    assert (naive["runs_since"], naive["runs_left_out"]) == (0, 6)
    assert [cell.recipe for cell in lab.measured].count("tuned") == 3


def test_a_set_up_that_fails_since_a_change_is_an_alarm(lab: Lab) -> None:
    lab.days(5)
    lab.torch, lab.fails = "2.10.0", frozenset({"tuned"})
    (said,) = lab.days(1)
    assert (said["exit_code"], said["moved"]["failed"]) == (1, 1)
    assert said["sentence"].startswith(
        "fashion-mlp, torch cpu tuned has no figure: out of memory while timing (MemoryError) "
        "since torch 2.9.0 became 2.10.0; 1 set-up: too early to tell, 1 of 5 runs"
    )


def test_only_set_ups_that_are_due_are_measured(lab: Lab) -> None:
    lab.watch("--recipe", "tuned")
    lab.now += timedelta(days=1)
    lab.days(4)
    lab.measured.clear()
    (said,) = lab.days(1)
    assert [cell.recipe for cell in lab.measured] == ["naive"]
    assert {name: cell["due"] for name, cell in by_recipe(said).items()} == {
        "naive": "4 of 5 runs",
        "tuned": None,
    }


def test_what_a_run_showed_is_reported_by_the_next_start(lab: Lab) -> None:
    """A start that was killed before it printed, or ``bench-agent run``, loses no alarm."""
    lab.days(5)
    lab.torch, lab.step_ns["naive"] = "2.10.0", 2_600_000
    lab.days(4)
    before = lab.home.watched.read_bytes()
    assert lab.document()["moved"]["slower"] == 1
    lab.home.watched.write_bytes(before)
    (said,) = lab.days(1)
    assert (said["runs"], said["moved"]["slower"], said["exit_code"]) == (0, 1, 1)


def test_the_text_has_a_sentence_a_table_and_what_changed(lab: Lab) -> None:
    lab.days(3, "--runs", "3")
    lab.driver, lab.torch, lab.step_ns["tuned"] = "580.2", "2.10.0", 1_100_000
    lab.days(2, "--runs", "3")
    lines = lab.watch("--runs", "3").stdout.splitlines()
    assert lines[0].startswith("fashion-mlp, torch cpu tuned takes")
    assert lines[1].split() == ["workload", "and", "set-up", "runs", "before", "since", "verdict"]
    rows = [line.split() for line in lines[3:5]]
    assert [(row[3], row[4]) for row in rows] == [("naive", "3+3"), ("tuned", "3+3")]
    assert lines[5] == ("Changed: driver of GPU 0 570.1 became 580.2, torch 2.9.0 became 2.10.0.")


def test_a_run_that_was_cut_off_can_resume_after_a_watch(lab: Lab) -> None:
    chosen = Selection(workloads=("fashion-mlp",), frameworks=("torch",))
    made = make_plan(PRESETS["smoke"], chosen, {"torch": lab.probes[None, "torch"]})
    journal.begin(lab.home, "a" * 32, "0" * 64, made)
    begun = journal.unfinished(lab.home)
    assert begun is not None
    lab.days(2)
    lab.conditions = BUSY
    assert lab.watch().exit_code == 4
    assert lab.stored() == 4
    assert journal.unfinished(lab.home) == begun


def test_an_unreachable_server_loses_nothing(lab: Lab) -> None:
    done = lab.watch("--server", "http://127.0.0.1:9")
    assert done.exit_code == 3
    assert done.stdout.startswith("2 set-ups: no earlier runs to compare with, 1 of 5 runs.")
    assert "submit --server http://127.0.0.1:9" in done.stderr
    assert lab.stored() == 2
