"""``make test-faults``: a short form of its faults loses nothing, and a loss is noticed."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.evidence.outages import agents, scene, site, starts, table
from tests.evidence.outages.databases import KINDS, Missing, database
from tests.evidence.outages.faults import FAULTS, KILLS, Fault
from tests.evidence.outages.verdict import Verdict, judge, settle
from tests.fakes import postgres
from tests.fakes.waiting import wait_for

from bench_server.db.store import Store

ONCE = ("server restarted", "database restarted", "database read-only", "clock jumps")
SHORT = {KILLS.name: 2} | dict.fromkeys(ONCE, 1)
HARMED = 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[postgres.Cluster]:
    running = postgres.start(durable=True)
    yield running
    running.stop()


def short(kind: str) -> list[Fault]:
    """The proxy's faults and those of SHORT."""
    return [
        fault._replace(times=HARMED if fault.proxied else SHORT[fault.name], agents=4)
        for fault in FAULTS
        if kind in fault.databases and (fault.proxied or fault.name in SHORT)
    ]


def test_postgresql_starts_below_a_private_folder() -> None:
    """As ``make test-soak`` has it: a temporary folder, and for root another account."""
    with TemporaryDirectory() as folder, database("postgresql", Path(folder)) as made:
        assert made.cluster is not None


@pytest.mark.parametrize(
    "kind", ["sqlite", "postgresql", pytest.param("pgbouncer", marks=pytest.mark.long)]
)
def test_a_short_form_of_the_faults_loses_nothing(kind: str, cluster: postgres.Cluster) -> None:
    try:
        outcome = scene.play_all(short(kind), kind, cluster, site.Forked)
    except Missing as error:
        pytest.skip(str(error))
    print(table.markdown([outcome]))
    assert list(table.wrong([outcome])) == []
    assert outcome.is_right
    assert outcome.verdict.acknowledged
    assert outcome.unasked == {}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_loses_nothing(kind: str) -> None:
    for fault in FAULTS:
        if not fault.on_disk:
            continue
        try:
            outcome = scene.play(fault._replace(agents=6), kind, 1, start=site.Forked)
        except Missing as error:
            pytest.skip(str(error))
        assert list(table.wrong([outcome])) == []
        assert outcome.is_right


def test_a_loss_is_noticed(tmp_path: Path) -> None:
    with database("sqlite", tmp_path) as made:
        with site.running(made.url, tmp_path, start=site.Forked) as here:
            posting = agents.start(2, tmp_path, here.address)
            assert wait_for(lambda: here.start_seconds, site.START_SECONDS)
            agents.rest(posting)
            agents.end(posting)
            settle(made.url)
        right = judge(made.url, tmp_path, posting)
        assert right == Verdict(agents.acknowledged(posting), 0, 0, 0, ())
        posting[0].measured += 1
        store = Store(made.url)
        for tamper in (
            "UPDATE aggregate SET ns_per_sample = ns_per_sample * 2",
            "UPDATE log_entry SET log_index = -1 WHERE log_index = "
            "(SELECT max(log_index) FROM log_entry WHERE kind = 'result')",
        ):
            with store.writing() as session:
                session.connection().exec_driver_sql(tamper)
        store.close()
        wrong = judge(made.url, tmp_path, posting)
    assert (wrong.lost, wrong.left) == (1, 0)
    assert not wrong.is_right
    assert wrong.wrong[0].startswith("agent 0 measured ")
    assert "a reindex gives other rows" in wrong.wrong


@pytest.mark.parametrize(
    ("acknowledged", "unasked", "is_right"), [(1, {}, True), (0, {}, False), (1, {500: 1}, False)]
)
def test_an_outage_without_results_or_with_errors_is_wrong(
    acknowledged: int, unasked: dict[int, int], is_right: bool
) -> None:
    verdict = Verdict(acknowledged, lost=0, doubled=0, left=0, wrong=())
    assert scene.Outcome("crowd", "sqlite", 1, verdict, (), (), unasked).is_right == is_right


def test_a_start_is_judged_by_the_processor_time_of_its_packages() -> None:
    reference = starts.reference_seconds()
    assert reference > 0
    just = starts.MOST * reference
    assert starts.too_slow([just, just, 9 * just], reference) is None
    words = starts.too_slow([just, 1.1 * just, 1.1 * just], reference)
    assert words is not None
    assert f"more than {starts.MOST:g} times" in words
    assert starts.too_slow([9 * just] * (starts.LEAST_STARTS - 1), reference) is None
    assert starts.too_slow([9 * just] * starts.LEAST_STARTS, reference)
