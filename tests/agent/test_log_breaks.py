"""A log that lost entries is accepted with a signed statement of the loss, and never without."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.fakes.log import Log, log_of
from tests.fakes.outboxes import put_new
from tests.fakes.results import private_key

from bench_agent.base.errors import LogContradiction
from bench_agent.base.home import Home
from bench_agent.remote.checkpoint_memory import CheckpointMemory
from bench_agent.remote.log_receipts import parse_receipt
from bench_agent.remote.outbox import Outbox
from bench_protocol.base.errors import InvalidProof
from bench_protocol.base.units import utc_text
from bench_protocol.signing import breaks, envelope, note, receipts

SERVER = "http://log.test"
START = datetime(2026, 11, 28, 12, tzinfo=UTC)
BEFORE, AFTER = utc_text(START - timedelta(hours=1)), utc_text(START + timedelta(hours=1))
RAWS = [envelope.seal("application/x", b"%d" % number, private_key()) for number in range(20)]


class Machine:
    """An agent that sent results at ``START``, which are the entries 4, 5 and 6 of a log."""

    def __init__(self, folder: Path) -> None:
        self.home, self.said, self.now = Home(folder), list[str](), START
        self.log = log_of(RAWS[:4])
        put_new(self.home, 3)
        self.outbox = Outbox(self.home.outbox)
        entries = [*self.outbox.pending()]
        for number, entry in enumerate(entries):
            self.log.add(entry.raw)
            answer = {"id": f"{number:016x}", "receipt": self.log.receipt(4 + number, 5 + number)}
            self.outbox.move(entry, "sent", answer)
        self.memory().meet()

    def memory(self) -> CheckpointMemory:
        return CheckpointMemory(self.home, SERVER, self.fetch, lambda: self.now, self.said.append)

    def fetch(self, path: str) -> bytes:
        return self.log.fetch(path)

    def is_pending(self) -> int:
        return len([*self.outbox.pending()])

    def meet_a_day_later(self) -> str:
        self.now = START + timedelta(days=1)
        return self.memory().meet().checkpoint


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def restored(log: Log, kept: int, others: int) -> Log:
    """The log after a restore, with entries of others since then."""
    after = Log(log.entries[:kept])
    for raw in RAWS[10 : 10 + others]:
        after.add(raw)
    return after


@pytest.mark.parametrize("others", [0, 1, 2, 9])
def test_what_a_stated_loss_took_is_pending_again(machine: Machine, others: int) -> None:
    machine.log = restored(machine.log, 5, others)
    machine.log.statements = [machine.log.state_break(5, AFTER)]
    assert machine.meet_a_day_later() == machine.log.checkpoint(5 + others)
    assert machine.is_pending() == 2
    (said,) = machine.said
    assert "lost every entry from number 5 on" in said
    assert "a disk failed. 2 results of this machine went with them" in said
    machine.meet_a_day_later()  # says nothing again
    assert len(machine.said) == 1
    (kept,) = machine.home.servers.glob("*.break")
    assert kept.read_text() == machine.log.statements[0]


def test_a_withdrawn_result_is_not_sent_again(machine: Machine) -> None:
    machine.outbox.mark_withdrawn(f"{2:016x}")
    machine.log = restored(machine.log, 5, 0)
    machine.log.statements = [machine.log.state_break(5, AFTER)]
    machine.meet_a_day_later()
    assert machine.is_pending() == 1


def test_the_log_has_no_receipt_of_a_lost_entry(machine: Machine) -> None:
    machine.outbox.mark_withdrawn(f"{2:016x}")
    answers = [entry.answer or {} for entry in machine.outbox.sent()]
    shown = [parse_receipt(answer["receipt"]).checkpoint for answer in answers]
    assert [machine.memory().has(checkpoint) for checkpoint in shown] == [True, True, True]
    machine.log = restored(machine.log, 5, 9)
    machine.log.statements = [machine.log.state_break(5, AFTER)]
    machine.meet_a_day_later()
    assert [machine.memory().has(checkpoint) for checkpoint in shown] == [True, False, False]


@pytest.mark.parametrize("kept", [7, 4])
def test_a_statement_that_is_damaged_stops_nobody(machine: Machine, kept: int) -> None:
    text = machine.log.state_break(kept, AFTER)
    machine.log.statements = ["", text.replace("kept", "kopt"), text[:-9]]
    machine.log.add(RAWS[9])
    assert machine.meet_a_day_later() == machine.log.checkpoint(8)


@pytest.mark.parametrize("kept", [7, 4])
def test_who_saw_nothing_of_the_loss_is_not_told(machine: Machine, kept: int) -> None:
    """The log has all that this machine saw, whatever a statement says."""
    machine.log.statements = [machine.log.state_break(kept, AFTER)]
    machine.log.add(RAWS[9])
    assert machine.meet_a_day_later() == machine.log.checkpoint(8)
    assert (machine.said, machine.is_pending()) == ([], 0)


def older(machine: Machine) -> Log:
    """Its statement would excuse the loss of later entries, as often as the server likes."""
    after = restored(machine.log, 5, 0)
    after.statements = [after.state_break(5, BEFORE)]
    return after


def of_the_future(machine: Machine) -> Log:
    after = restored(machine.log, 5, 0)
    after.statements = [after.state_break(5, utc_text(START + timedelta(days=9)))]
    return after


def keeps_more_than_it_shows(machine: Machine) -> Log:
    after = restored(machine.log, 5, 0)
    after.statements = [machine.log.state_break(6, AFTER)]
    return after


def of_another_key(machine: Machine) -> Log:
    after = restored(machine.log, 5, 0)
    after.statements = [after.state_break(5, AFTER, private_key(9))]
    return after


def unsigned(machine: Machine) -> Log:
    after = restored(machine.log, 5, 0)
    after.statements = [after.state_break(5, AFTER).partition("\n\n")[0]]
    return after


def a_checkpoint(machine: Machine) -> Log:
    after = restored(machine.log, 5, 0)
    after.statements = [after.checkpoint(5)]
    return after


def of_another_tree(machine: Machine) -> Log:
    after = restored(machine.log, 5, 0)
    after.statements = [Log([bytes(32)] * 5).state_break(5, AFTER)]
    return after


def keeps_another_past(machine: Machine) -> Log:
    """This machine's receipt for entry 4 shows the change."""
    after = Log([bytes(32), *machine.log.entries[1:5]])
    after.statements = [after.state_break(5, AFTER)]
    return after


def takes_more_than_it_states(machine: Machine) -> Log:
    after = restored(machine.log, 4, 2)
    after.statements = [after.state_break(6, AFTER)]
    return after


@pytest.mark.parametrize(
    "lying",
    [
        older,
        of_the_future,
        keeps_more_than_it_shows,
        of_another_key,
        unsigned,
        a_checkpoint,
        of_another_tree,
        keeps_another_past,
        takes_more_than_it_states,
    ],
)
def test_a_false_statement_is_refused(machine: Machine, lying: Callable[[Machine], Log]) -> None:
    before = machine.memory().stored_server
    machine.log = lying(machine)
    with pytest.raises(LogContradiction):
        machine.meet_a_day_later()
    assert machine.memory().stored_server == before
    assert (machine.said, machine.is_pending()) == ([], 0)


def test_a_statement_is_used_once(machine: Machine) -> None:
    machine.log = restored(machine.log, 5, 4)
    machine.log.statements = [machine.log.state_break(5, AFTER)]
    machine.meet_a_day_later()
    stated, machine.log = machine.log.statements, restored(machine.log, 6, 0)
    machine.log.statements = stated
    with pytest.raises(LogContradiction, match="had 9 entries and shows 6"):
        machine.meet_a_day_later()


def test_all_evidence_is_kept(machine: Machine) -> None:
    """Of an earlier loss and an earlier contradiction too; the same text once."""
    whole = machine.log
    for kept in (5, 4):
        machine.log = restored(whole, kept, 0)
        for _ in range(2):
            with pytest.raises(LogContradiction):
                machine.memory().meet()
        at = utc_text(machine.now + timedelta(hours=1))
        machine.log.statements = [machine.log.state_break(kept, at)]
        machine.now += timedelta(days=1)
        machine.memory().meet()
        machine.now += timedelta(days=1)
    assert len([*machine.home.servers.glob("*.break")]) == 2
    assert len([*machine.home.servers.glob("*.contradiction")]) == 2


def test_a_slow_clock_gives_a_statement_no_second_use(machine: Machine) -> None:
    machine.log = restored(machine.log, 5, 4)
    machine.log.statements = stated = [machine.log.state_break(5, AFTER)]
    machine.now = START + timedelta(minutes=56)
    machine.memory().meet()
    machine.log.add(RAWS[19])
    machine.now += timedelta(minutes=1)
    machine.memory().meet()
    machine.log = restored(machine.log, 6, 0)
    machine.log.statements = stated
    machine.now += timedelta(minutes=1)
    with pytest.raises(LogContradiction, match="had 10 entries and shows 6"):
        machine.memory().meet()


def test_of_two_losses_the_one_that_kept_less_counts(machine: Machine) -> None:
    first = restored(machine.log, 5, 4)
    machine.log = restored(first, 6, 2)
    machine.log.statements = [
        machine.log.state_break(6, utc_text(START + timedelta(hours=2))),
        first.state_break(5, AFTER),
    ]
    machine.meet_a_day_later()
    assert machine.is_pending() == 2


def test_neither_a_checkpoint_nor_a_statement_is_taken_for_the_other(machine: Machine) -> None:
    log = machine.log
    key = note.parse_key(str(machine.memory().meet().key))
    text = log.state_break(5, AFTER)
    assert breaks.open_break(text, key).kept == receipts.open_checkpoint(log.checkpoint(5), key)
    with pytest.raises(InvalidProof):
        receipts.open_checkpoint(text, key)
