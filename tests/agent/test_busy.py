"""The question before a run on a busy machine."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
import typer
from tests.agent.test_live import PLAN

from bench_agent.cli.busy import QUESTION, idle_or_asked
from bench_agent.run.idle_gate import IdleGate
from bench_protocol.payload.readings import Conditions

BUSY, IDLE = Conditions(cpu_utilisation_percent=97.0), Conditions(cpu_utilisation_percent=2.0)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    answers: list[str] = []

    def prompt(question: str, **_: object) -> str:
        assert question == QUESTION
        return answers.pop(0)

    monkeypatch.setattr(typer, "prompt", prompt)
    at_terminal(monkeypatch, True)
    return answers


def at_terminal(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    stdin = SimpleNamespace(isatty=lambda: terminal)
    monkeypatch.setattr(typer, "get_text_stream", lambda name: stdin)


def gate_that_sees(*seen: Conditions, wait_seconds: float = 0.0) -> IdleGate:
    left: Iterator[Conditions] = iter(seen)
    clock = iter(range(10_000))
    return IdleGate(
        wait_seconds,
        look=lambda device: next(left),
        clock=lambda: next(clock),
        sleep=lambda seconds: None,
    )


def test_an_idle_machine_is_not_asked_about(asked: list[str]) -> None:
    gate = gate_that_sees(IDLE)
    assert idle_or_asked(PLAN, gate, yes=False) is gate


def test_measuring_anyway_waits_no_more(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    asked.append("m")
    gate = gate_that_sees(*[BUSY] * 40, wait_seconds=30.0)
    assert idle_or_asked(PLAN, gate, yes=False).wait_seconds == 0.0
    said = "the processor was 97 % busy before the start; figures measured now carry this warning\n"
    assert said in capsys.readouterr().err


def test_waiting_lasts_until_the_machine_is_idle(asked: list[str]) -> None:
    asked += ["Wait"]
    gate = gate_that_sees(BUSY, *[BUSY] * 50, IDLE)
    assert idle_or_asked(PLAN, gate, yes=False) is gate


def test_stopping_measures_nothing(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    asked.append("stop")
    with pytest.raises(typer.Exit) as left:
        idle_or_asked(PLAN, gate_that_sees(BUSY), yes=False)
    assert left.value.exit_code == 4
    assert "Nothing was measured." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("terminal", "yes", "strict"), [(False, False, False), (True, True, False), (True, False, True)]
)
def test_nobody_is_asked_without_a_terminal_with_yes_and_with_strict(
    asked: list[str], monkeypatch: pytest.MonkeyPatch, terminal: bool, yes: bool, strict: bool
) -> None:
    at_terminal(monkeypatch, terminal)
    gate = replace(gate_that_sees(), strict=strict)
    assert idle_or_asked(PLAN, gate, yes) is gate
