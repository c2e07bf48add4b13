"""What commands print at a terminal, in a file and with colours chosen: at the console's seam."""

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rich.console import Console
from rich.text import Text
from tests.fakes.outboxes import summary_of
from tests.fakes.results import make_cell, make_result
from tests.fakes.runs import a_run

from bench_agent.base.home import Home
from bench_agent.base.messages import FoundDevice, Probe
from bench_agent.doctor.finding import Finding, document, print_findings
from bench_agent.output import plan_table
from bench_agent.output.ab_table import show_answer
from bench_agent.output.console import FAILURE, GOOD, WARNING, console, say, show_table, table_lines
from bench_agent.output.documents import short_name
from bench_agent.output.summary import show_end
from bench_agent.plan.plan import Selection, make_plan
from bench_agent.plan.presets import preset_of

YELLOW, RED, GREEN = "\x1b[33m", "\x1b[31m", "\x1b[32m"
HOME = Home(Path("/home/of/agent"))
FINDINGS = [
    Finding("system", "ok", "Linux is supported"),
    Finding("keys", "ok", "key and salt are for their owner only, " * 3),
    Finding("glibc", "skip", "only Linux has it"),
    Finding("busy", "warn", "other work runs: load 5.2 on 2 cores", "close python, or wait"),
    Finding("home", "fail", "/home/of/agent cannot be written", "chmod -R u+rwX /home/of/agent"),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


Prints = Callable[[Console], None]


def printed(
    prints: Prints, stream: io.StringIO, environ: Mapping[str, str] = {}, width: int | None = None
) -> str:
    prints(console(stream, environ=environ, width=width))
    return stream.getvalue()


def all_styles(shown: Console) -> None:
    for style in (GOOD, WARNING, FAILURE, ""):
        say(shown, "12,300 samples/s in /tmp", style)


def a_plan(shown: Console) -> None:
    devices = (
        FoundDevice(kind="cuda", index=1, name="GPU"),
        FoundDevice(kind="cpu", index=0, name="CPU"),
    )
    probes = {"tensorflow": Probe(devices=devices, environment=None)}
    made = make_plan(preset_of("quick"), Selection(frameworks=("tensorflow",)), probes)
    plan_table.print_plan(made, shown)


def an_end(shown: Console) -> None:
    with TemporaryDirectory() as folder:
        summary = summary_of(Path(folder), a_run())
        summary.waiting, summary.interrupted = 3, True
        show_end(shown, summary, HOME)


def findings(shown: Console) -> None:
    print_findings(FINDINGS, shown, every=True)


@pytest.mark.parametrize(
    ("stream", "environ", "coloured"),
    [
        (Terminal, {"TERM": "xterm"}, True),
        (Terminal, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (io.StringIO, {}, False),
        (io.StringIO, {"FORCE_COLOR": "1"}, True),
        (io.StringIO, {"FORCE_COLOR": ""}, False),
        (io.StringIO, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_have_a_meaning_and_are_chosen_by_the_reader(
    stream: type[io.StringIO],
    environ: Mapping[str, str],
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = printed(all_styles, stream(), environ)
    lines = [f"{colour}12,300 samples/s in /tmp\x1b[0m" for colour in (GREEN, YELLOW, RED)]
    plain = "12,300 samples/s in /tmp"  # no colour for a number or a path
    assert text.splitlines() == ([*lines, plain] if coloured else [plain] * 4)


def test_forced_colours_make_no_terminal_of_a_file() -> None:
    """A terminal gets live displays, which are noise in a file."""
    assert not console(io.StringIO(), environ={"FORCE_COLOR": "1"}).is_terminal


def test_warnings_are_yellow_failures_red_and_a_good_end_green(tmp_path: Path) -> None:
    forced = {"FORCE_COLOR": "1"}
    text = printed(an_end, io.StringIO(), forced)
    assert f"{RED}Failed: fashion-lstm" in text
    assert f"{YELLOW}Not worth sharing" in text
    assert f"{YELLOW}71,111 ?" in text
    assert GREEN not in text  # some of it was disturbed
    summary = summary_of(tmp_path, [make_result()])
    text = printed(lambda shown: show_end(shown, summary, HOME), io.StringIO(), forced)
    assert text.startswith(f"{GREEN}Worth sharing")
    text = printed(findings, io.StringIO(), forced)
    assert f"{YELLOW}Warning: other work" in text
    assert f"{RED}Failure: /home" in text
    verdict = {"verdict_kind": "faster", "speed_up": 1.79, "warnings": []}
    verdict |= {"speed_up_low": 1.7, "speed_up_high": 1.8}
    speeds = {"samples_per_second": [100.0], "cell": {"workload": "mnist-cnn"}}
    answer = {**verdict, "a": speeds, "b": speeds}
    text = printed(lambda shown: show_answer(shown, answer), io.StringIO(), forced)
    assert text.startswith(f"{GREEN}B is 1.79 times as fast as A")


@pytest.mark.parametrize("width", [20, 40, 60, 80])
@pytest.mark.parametrize("prints", [an_end, a_plan, findings])
def test_a_line_breaks_between_words_only(prints: Prints, width: int) -> None:
    unbroken = printed(prints, io.StringIO())
    text = re.sub(r"\x1b\[\d+m", "", printed(prints, Terminal(), {}, width))
    words = {word.strip(",") for word in unbroken.split()}
    assert {word.strip(",") for word in text.replace("─", "").split()} <= words
    for line in text.splitlines():
        copied = line.startswith("  ")  # a command or an address is never broken
        assert copied or len(line) <= width or " " not in line.strip()


def test_words_of_a_server_steer_no_terminal() -> None:
    def hostile(shown: Console) -> None:
        say(shown, "refused: \x1b[2J\x9b2J\x07 gone\nnext line")
        show_table(shown, ["name"], [["desk\x1b]0;title\x07"], [Text("a\x1b[31m")]])

    shown = printed(hostile, io.StringIO())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert "gone\nnext line\n" in shown


def test_a_command_is_not_broken() -> None:
    command = f"  BENCH_HOME=/a bench-agent run {'--workload mnist-cnn ' * 9}"
    said = printed(lambda shown: say(shown, f"To continue:\n{command}"), Terminal(), width=40)
    assert said.splitlines()[1] == command


def test_a_file_gets_whole_lines() -> None:
    text = printed(findings, io.StringIO(), width=40)
    assert f"keys    passed          {FINDINGS[1].sentence.strip()}\n" in text


def test_a_table_too_wide_for_its_terminal_becomes_paragraphs() -> None:
    rows = [["mnist-cnn"], ["  tensorflow cpu naive", "12,256 ?", "41.5 s"]]
    wide = [
        line.plain for line in table_lines(("set-up", "samples/s", "epoch"), rows, 80, ("epoch",))
    ]
    assert wide == [
        "set-up                  samples/s   epoch",
        "─────────────────────────────────────────",
        "mnist-cnn",
        "  tensorflow cpu naive  12,256 ?   41.5 s",
    ]
    narrow = [line.plain for line in table_lines(("set-up", "samples/s", "epoch"), rows, 24)]
    assert narrow == ["mnist-cnn", "  tensorflow cpu naive,", "  12,256 ?, 41.5 s"]


def test_a_doctor_says_problems_first_and_what_works_in_one_line() -> None:
    text = printed(lambda shown: print_findings(FINDINGS[:3], shown), io.StringIO())
    assert text == "No problem: 2 checks passed; --all lists them.\n"
    absent = Finding("frameworks.jax", "skip", "jax is not installed", "pip install jax")
    some = [*FINDINGS, absent]
    text = printed(lambda shown: print_findings(some, shown), io.StringIO())
    assert text == (
        "Failure: /home/of/agent cannot be written\n  fix: chmod -R u+rwX /home/of/agent\n"
        "Warning: other work runs: load 5.2 on 2 cores\n  fix: close python, or wait\n"
        "Optional: jax is not installed\n  fix: pip install jax\n"
        "2 checks passed; --all lists them.\n"
    )
    text = printed(findings, io.StringIO())
    assert "system  passed          Linux is supported" in text
    assert "glibc   does not apply  only Linux has it" in text
    assert text.endswith("\n2 checks passed.\n")
    assert [document(some)["healthy"] for some in (FINDINGS, FINDINGS[:4])] == [False, True]
    assert not re.search("[│┃]", text)


def test_what_is_usual_goes_without_saying() -> None:
    assert short_name(make_cell()) == "mnist-cnn, tensorflow cpu naive"
    odd = make_cell(batch_size=256, precision="mixed_bfloat16", data="real")
    assert (
        short_name(odd) == "mnist-cnn, tensorflow cpu naive, batch 256, mixed_bfloat16, real data"
    )
