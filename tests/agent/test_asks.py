"""Asks of a server: what is believed, what is offered, and that no server delays a run."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.agent.test_plan import HERE, planned
from tests.agent.test_resume import OPEN, Quiet, measure
from tests.fakes import results
from typer.testing import CliRunner

from bench_agent.base.errors import UsageProblem
from bench_agent.base.home import Home
from bench_agent.cli.help_others import Help, with_asked
from bench_agent.cli.main import app
from bench_agent.plan import asked
from bench_agent.plan.plan import Plan, PlannedCell, Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.remote import asks as remote
from bench_agent.remote.outbox import Outbox
from bench_agent.run import journal
from bench_agent.run.context import RunContext
from bench_agent.run.run import run_plan
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.hardware import hardware_name, slug
from bench_protocol.payload.result import Asked
from bench_protocol.trust import asks

MACHINE = results.make_machine()
HARDWARE = slug(hardware_name(MACHINE, Device(kind="cpu", index=0)))
ROOT = "7" * 64
DENSE, CNN = workload_named("mnist-dense"), workload_named("mnist-cnn")
RUN_ID = "a" * 32


def ask(**changes: Any) -> dict[str, Any]:
    return {
        "hardware_slug": HARDWARE,
        "workload": DENSE.name,
        "workload_digest": DENSE.digest,
        "framework": "mlx",
        "device": "cpu",
        "recipe": "naive",
        "batch_size": DENSE.batch_size,
        "precision": "float32",
        "data": "generated",
        "timing": "short",
        "reason": "single_owner",
        "result": "0f1e2d3c4b5a6978",
        "new": 1,
        **changes,
    }


def document(*asked_for: dict[str, Any]) -> bytes:
    return json.dumps({"root": ROOT, "asks": asked_for}).encode()


def wanted_of(answer: Callable[[], httpx.Response]) -> list[tuple[remote.ServerAsk, Asked]]:
    asked_for: list[str] = []

    def server(request: httpx.Request) -> httpx.Response:
        asked_for.append(str(request.url))
        return answer()

    transport = httpx.MockTransport(server)
    found = remote.wanted("http://s", None, [HARDWARE], wait_seconds=0.5, transport=transport)
    assert asked_for == [f"http://s/api/v1/asks?hardware={HARDWARE}"]
    return found


def test_the_asks_of_this_hardware_are_read() -> None:
    answer = document(ask(), ask(hardware_slug="another-one"))
    ((found, named),) = wanted_of(lambda: httpx.Response(200, content=answer))
    assert found.workload == "mnist-dense"
    assert named == Asked(root=ROOT, reason="single_owner", result="0f1e2d3c4b5a6978")


def test_a_set_up_that_was_not_drawn_is_not_believed() -> None:
    answer = document(*(ask(reason="sample", batch_size=size) for size in range(1, 200)))
    found = wanted_of(lambda: httpx.Response(200, content=answer))
    assert 0 < len(found) < 20
    assert all(asks.is_drawn(ROOT, one.setup, "sample") for one, _ in found)


def does_not_answer() -> httpx.Response:
    raise httpx.ConnectError("refused")


def does_not_finish() -> httpx.Response:
    time.sleep(1)
    return httpx.Response(200, content=document(ask()))


@pytest.mark.parametrize(
    "answer",
    [
        does_not_answer,
        does_not_finish,
        lambda: httpx.Response(404, content=b"{}"),
        lambda: httpx.Response(200, content=b"<html>"),
        lambda: httpx.Response(200, content=b'{"root":"no hex","asks":[]}'),
        lambda: httpx.Response(200, content=b'{"root":5}'),
        lambda: httpx.Response(200, content=document({"reason": "because"})),
        lambda: httpx.Response(200, content=b'{"root":null,"asks":[]}'),
        lambda: httpx.Response(429, content=b"{}", headers={"Retry-After": "60"}),
        lambda: httpx.Response(503, content=b"{}", headers={"Retry-After": "1"}),
    ],
)
def test_a_server_with_another_answer_asks_for_nothing(
    answer: Callable[[], httpx.Response],
) -> None:
    assert wanted_of(answer) == []


def run_of(seconds: float) -> Plan:
    (first, *_) = planned(frameworks=("mlx",), workloads=("mnist-cnn",), recipes=("naive",)).cells
    return Plan(PRESETS["smoke"], (first.model_copy(update={"estimate_seconds": seconds}),), (), 1)


def lay_out(selection: Selection) -> Plan:
    return make_plan(PRESETS["smoke"], selection, HERE)


Wanted = tuple[remote.ServerAsk, Asked]


def wanted(**changes: Any) -> Wanted:
    return remote.ServerAsk(**ask(**changes)), Asked(root=ROOT, reason="single_owner", result=None)


def chosen(seconds: float, *several: Wanted) -> tuple[PlannedCell, ...]:
    return asked.choose(run_of(seconds), several, lay_out)


SIX = tuple(wanted(batch_size=size) for size in (32, 64, 128, 256, 512, 1024))


def test_three_cells_at_most_and_a_tenth_of_the_time() -> None:
    assert [p.cell.batch_size for p in chosen(1e6, *SIX)] == [32, 64, 128]
    one = chosen(1e6, wanted())[0].estimate_seconds
    for number in (0, 1, 2):
        offered = chosen(10 * one * (number + 0.5), *[wanted()] * 1, *SIX)
        assert sum(p.estimate_seconds for p in offered) <= one * (number + 0.5)
    assert chosen(0.0, *SIX) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"framework": "of-tomorrow"},
        {"workload": "of-tomorrow"},
        {"workload_digest": "0" * 64},
        {"device": "metal"},
        {"recipe": "of-tomorrow"},
        {"precision": "mixed_float16"},
        {"data": "real"},
        {"workload": CNN.name, "workload_digest": CNN.digest, "batch_size": CNN.batch_size},
    ],
)
def test_what_cannot_run_here_or_runs_anyway_is_not_offered(change: dict[str, Any]) -> None:
    assert chosen(1e6, wanted(**change)) == ()
    assert len(chosen(1e6, wanted(**change), wanted())) == 1


@pytest.mark.parametrize(
    ("answer", "terminal", "typed", "helps"),
    [
        (Help.YES, False, False, True),
        (Help.NO, True, True, False),
        (None, True, True, True),
        (Help.ASK, True, False, False),
        (None, False, True, False),
        (Help.ASK, False, True, False),
    ],
)
def test_the_user_decides(
    monkeypatch: pytest.MonkeyPatch, answer: Help | None, terminal: bool, typed: bool, helps: bool
) -> None:
    stdin = SimpleNamespace(isatty=lambda: terminal)
    monkeypatch.setattr(remote, "wanted", lambda server, token, slugs: [wanted()])
    monkeypatch.setattr("typer.get_text_stream", lambda _: stdin)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: typed)
    made = with_asked(run_of(1e6), lay_out, "http://s", None, MACHINE, answer)
    assert [p.cell.workload for p in made.asked] == (["mnist-dense"] if helps else [])


def test_the_command_plans_what_the_server_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(begun: journal.Journal, *_: object) -> None:
        cells.extend(one.cell.workload for one in begun.plan().asked)
        raise UsageProblem("enough")

    cells: list[str] = []
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(remote, "wanted", lambda server, token, slugs: [wanted()])
    for name, instead in (
        ("planned", lambda *_: (run_of(1e6), lay_out)),
        ("consent_before", lambda *_: True),
        ("idle_or_asked", lambda *_: OPEN),
        ("measured", measured),
    ):
        monkeypatch.setattr(f"bench_agent.cli.run.{name}", instead)
    arguments = ["run", "--server", "http://server.test", "--help-others", "yes", "--yes"]
    shown = CliRunner().invoke(app, arguments).stderr
    assert "http://server.test asks for 1 more:" in shown
    assert cells == ["mnist-dense"]


def test_an_answer_names_its_ask_also_after_a_resume(tmp_path: Path) -> None:
    """Asked cells run once, after the user's own, and need no server."""
    home = Home(tmp_path / "home")
    run = run_of(1e6)
    made = Plan(run.preset, run.cells, (), 2, asked=chosen(1e6, wanted()))
    journal.begin(home, RUN_ID, "0" * 64, made)
    again = journal.unfinished(home)
    assert again is not None
    assert len(again.plan()) == 3
    summary = run_plan(again, RunContext(home, Quiet(), run_job=measure, gate=OPEN))
    assert [r.cell.workload for r in summary.results] == ["mnist-cnn", "mnist-cnn", "mnist-dense"]
    assert [r.asked and r.asked.reason for r in summary.results] == [None, None, "single_owner"]
    stored = [entry.result() for entry in Outbox(home.outbox).pending()]
    assert sum(result.asked is not None for result in stored) == 1
