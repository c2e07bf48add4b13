"""``watch``: what is due, exit codes, the server's history. Engine, clock and machine are fake."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.fakes.lab import BUSY, Lab, make_lab

from bench_agent.cli import watch as command
from bench_agent.plan.plan import Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.remote.rank import History, MachineRank
from bench_agent.run import journal
from bench_agent.run.summary import RunSummary


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return make_lab(tmp_path, monkeypatch)


def reasons(lab: Lab, days: int = 1, *options: str) -> list[set[str]]:
    said = []
    for _ in range(days):
        said.append({due["why"] for due in lab.document(*options)["due"]})
        lab.now += timedelta(days=1)
    return said


def test_each_start_measures_once_until_four_runs_follow_a_change(lab: Lab) -> None:
    few = [{f"{runs} of 4 runs in this environment"} for runs in (1, 2, 3)]
    assert reasons(lab, 6) == [{"no run yet"}, *few, set(), set()]
    lab.driver = "580.2"
    assert reasons(lab, 6) == [{"driver of GPU 0 570.1 became 580.2"}, *few, set(), set()]
    lab.driver, lab.torch = "570.1", "2.10.0"
    both = {"torch 2.9.0 became 2.10.0, driver of GPU 0 580.2 became 570.1"}
    assert reasons(lab, 3) == [both, *few[:2]]
    assert lab.stored() == 2 * 11


def test_a_week_after_the_last_run_it_measures_again(lab: Lab) -> None:
    reasons(lab, 4)
    lab.now += timedelta(days=5)
    assert reasons(lab, 2) == [set(), {"last run 7 days ago"}]
    assert reasons(lab, 1, "--every-days", "0.5") == [{"last run 1 day ago"}]


def test_only_set_ups_that_are_due_are_measured(lab: Lab) -> None:
    for _ in range(4):
        lab.watch("--recipe", "tuned")
    lab.measured.clear()
    (due,) = lab.document()["due"]
    assert [cell.recipe for cell in lab.measured] == [due["cell"]["recipe"]] == ["naive"]
    assert due["cell_digest"] == lab.measured[0].digest


def test_a_busy_machine_is_not_measured(lab: Lab) -> None:
    lab.conditions = BUSY
    said = lab.watch()
    assert said.exit_code == 4
    assert said.stdout.startswith("The machine is not idle: the processor was 80 % busy before")
    assert lab.stored() == 0
    assert journal.unfinished(lab.home) is None
    assert lab.document()["not_idle"] == "the processor was 80 % busy before the start"


def test_a_set_up_that_fails_is_an_error_and_counts_as_a_run(lab: Lab) -> None:
    lab.fails = frozenset({"tuned"})
    assert lab.watch().exit_code == 1
    assert reasons(lab) == [{"1 of 4 runs in this environment"}]


def test_without_a_server_it_says_where_the_history_is(lab: Lab) -> None:
    done = lab.watch()
    assert done.exit_code == 0
    assert "fashion-mlp, torch cpu tuned is due: no run yet" in done.stderr
    assert done.stdout.endswith(
        "A server keeps this machine's history and ranks it: bench-agent watch --server URL.\n"
    )
    for _ in range(3):
        lab.watch()
    assert lab.watch().stdout == "Nothing is due.\n"


def test_it_prints_what_the_history_of_the_server_says(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History.model_validate(
        {
            "points": [{}] * 8,
            "changes": [
                {
                    "started_at": "2026-03-02T03:00:00Z",
                    "speed_up": 0.8,
                    "speed_up_low": 0.75,
                    "speed_up_high": 0.85,
                    "changed": [{"name": "machine.gpus.0.driver", "before": "1", "after": "2"}],
                }
            ],
        }
    )

    measure = command.measured

    def measured(*given: object) -> RunSummary:
        summary = measure(*given)
        summary.rank = MachineRank("https://bench.lab/machines/0123456789abcdef", None)
        return summary

    monkeypatch.setattr(command, "measured", measured)
    monkeypatch.setattr(
        command, "histories", lambda client, machine_id, results: {results[0].cell: history}
    )
    done = lab.watch("--server", "http://127.0.0.1:9")
    assert (
        "torch cpu naive: 20 % slower since 2026-03-02 (95 % CI 15 to 25 % slower): "
        "driver of GPU 0 1 became 2"
    ) in done.stdout
    assert lab.document("--server", "http://127.0.0.1:9")["histories"][0]["changes"]


def test_a_run_that_was_cut_off_can_resume_after_a_watch(lab: Lab) -> None:
    chosen = Selection(workloads=("fashion-mlp",), frameworks=("torch",))
    made = make_plan(PRESETS["smoke"], chosen, {"torch": lab.probes[None, "torch"]})
    journal.begin(lab.home, "a" * 32, "0" * 64, made)
    begun = journal.unfinished(lab.home)
    assert begun is not None
    lab.watch()
    lab.conditions = BUSY
    assert lab.watch().exit_code == 4
    assert lab.stored() == 2
    assert journal.unfinished(lab.home) == begun


def test_an_unreachable_server_loses_nothing(lab: Lab) -> None:
    done = lab.watch("--server", "http://127.0.0.1:9")
    assert done.exit_code == 3
    assert "submit --server http://127.0.0.1:9" in done.stderr
    assert lab.stored() == 2
