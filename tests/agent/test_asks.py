"""Asks of a server: what is believed, what is offered, and that no server delays a run."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.test_plan import HERE, planned
from tests.agent.test_resume import OPEN, Quiet, measure
from tests.fakes import http_stub, results

from bench_agent.base.home import Home
from bench_agent.cli.help_others import Help, with_asked
from bench_agent.plan import asked
from bench_agent.plan.plan import Plan, PlannedCell, Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.remote import asks as remote
from bench_agent.remote.outbox import Outbox
from bench_agent.run import journal
from bench_agent.run.context import RunContext
from bench_agent.run.run import run_plan
from bench_protocol.base.names import slug
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.hardware import hardware_name
from bench_protocol.payload.result import Asked
from bench_protocol.trust import asks

MACHINE = results.make_machine()
HARDWARE = slug(hardware_name(MACHINE, Device(kind="cpu", index=0)))
ROOT = "7" * 64
DENSE = workload_named("mnist-dense")
RUN_ID = "a" * 32


def ask(**changes: Any) -> dict[str, Any]:
    """An ask as a server sends it, with a field that no agent knows yet."""
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


class Answers:
    """What the server answers next, and whether it ever finishes."""

    def __init__(self) -> None:
        self.body = document()
        self.status = 200
        self.headers: dict[str, str] = {}
        self.hangs = threading.Event()
        self.paths: list[str] = []


@pytest.fixture
def server() -> Iterator[tuple[str, Answers]]:
    """A real server on loopback."""
    answers, over = Answers(), threading.Event()

    class Handler(http_stub.Handler):
        def answer(self) -> None:
            answers.paths.append(self.path)
            self.send_response(answers.status)
            for name, value in answers.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answers.body)))
            self.end_headers()
            if answers.hangs.is_set():
                over.wait(30)
            self.wfile.write(answers.body)

    with http_stub.serving(Handler, over) as address:
        yield address, answers


def test_the_asks_of_this_hardware_are_read(server: tuple[str, Answers]) -> None:
    address, answers = server
    answers.body = document(ask(), ask(hardware_slug="another-one"))
    ((found, named),) = remote.wanted(address, None, [HARDWARE])
    assert found.workload == "mnist-dense"
    assert named == Asked(root=ROOT, reason="single_owner", result="0f1e2d3c4b5a6978")
    assert answers.paths == [f"/api/v1/asks?hardware={HARDWARE}"]


def test_a_set_up_that_was_not_drawn_is_not_believed(server: tuple[str, Answers]) -> None:
    address, answers = server
    setups = [ask(reason="sample", batch_size=size) for size in range(1, 200)]
    answers.body = document(*setups)
    found = remote.wanted(address, None, [HARDWARE])
    assert 0 < len(found) < 20
    assert all(asks.is_drawn(ROOT, one.setup, "sample") for one, _ in found)


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (404, b"{}", {}),
        (200, b"<html>", {}),
        (200, b'{"root":"no hex","asks":[]}', {}),
        (200, b'{"root":5}', {}),
        (200, document({"reason": "because"}), {}),
        (200, b'{"root":null,"asks":[]}', {}),
        (429, b"{}", {"Retry-After": "60"}),
        (503, b"{}", {"Retry-After": "1"}),
    ],
)
def test_a_server_with_another_answer_asks_for_nothing(
    server: tuple[str, Answers], status: int, body: bytes, headers: dict[str, str]
) -> None:
    address, answers = server
    answers.status, answers.body, answers.headers = status, body, headers
    assert remote.wanted(address, None, [HARDWARE]) == []
    assert len(answers.paths) == 1


def test_a_server_that_does_not_finish_asks_for_nothing(server: tuple[str, Answers]) -> None:
    address, answers = server
    answers.hangs.set()
    answers.body = document(ask())
    assert remote.wanted(address, None, [HARDWARE], wait_seconds=0.2) == []


def test_an_absent_server_asks_for_nothing() -> None:
    assert remote.wanted("http://127.0.0.1:1", None, [HARDWARE]) == []


# -- what is offered -------------------------------------------------------------------------------


def run_of(seconds: float) -> Plan:
    """A run of one cell that takes so long."""
    (first, *_) = planned(frameworks=("mlx",), workloads=("mnist-cnn",), recipes=("naive",)).cells
    cell = first.model_copy(update={"estimate_seconds": seconds})
    return Plan(PRESETS["smoke"], (cell,), (), 1)


def lay_out(selection: Selection) -> Plan:
    return make_plan(PRESETS["smoke"], selection, HERE)


Wanted = tuple[remote.ServerAsk, Asked]


def wanted(**changes: Any) -> Wanted:
    named = Asked(root=ROOT, reason="single_owner", result=None)
    return remote.ServerAsk(**ask(**changes)), named


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
        {"workload": "mnist-cnn", "workload_digest": workload_named("mnist-cnn").digest,
         "batch_size": workload_named("mnist-cnn").batch_size},
    ],
)  # fmt: skip
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
    server: tuple[str, Answers],
    monkeypatch: pytest.MonkeyPatch,
    answer: Help | None,
    terminal: bool,
    typed: bool,
    helps: bool,
) -> None:
    address, answers = server
    answers.body = document(ask())
    stdin = type("Stdin", (), {"isatty": lambda self: terminal})()
    monkeypatch.setattr("typer.get_text_stream", lambda _: stdin)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: typed)
    made = with_asked(run_of(1e6), lay_out, address, None, MACHINE, answer)
    assert [p.cell.workload for p in made.asked] == (["mnist-dense"] if helps else [])


# -- what is measured ------------------------------------------------------------------------------


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
