"""Input of ``verify``: addresses, bundles and envelopes."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result as Ended
from tests.fakes import datasets, results
from tests.fakes.outboxes import put
from tests.fakes.seeding import (
    figures_of_job,
    recomputed,
    seed_honestly,
    train_on,
    with_measurement,
)
from typer.testing import CliRunner

from bench_agent import data
from bench_agent.base.errors import UsageProblem
from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key
from bench_agent.cli import main as cli
from bench_agent.remote import recomputations
from bench_agent.remote.outbox import Outbox
from bench_agent.remote.recompute import of_recomputations
from bench_agent.remote.verify import read_file
from bench_protocol.base.errors import InvalidProof
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.real_data.manifest import Manifest
from bench_protocol.real_data.parse import Split
from bench_protocol.recompute import figures
from bench_protocol.training import reading
from bench_protocol.training.recomputation import SessionJob
from bench_protocol.training.recomputed import Figures


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nonsense", r"nonsense cannot be read \(No such file .*address"),
        ("other", "neither a bundle nor an envelope"),
        ("/dev/zero", r"cannot be read \(it is not a regular file\)"),
        (".", r"cannot be read \(it is not a regular file\)"),
    ],
)
def test_what_is_neither_bundle_nor_envelope(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "other").write_text("{}")
    with pytest.raises(UsageProblem, match=says):
        read_file(tmp_path / name)


NONCE = "9d" * 32
Real = tuple[Path, Manifest, tuple[Split, Split]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "agent"))

    def invoke(*words: str) -> Ended:
        return CliRunner().invoke(cli.app, ["verify", *words])

    return invoke


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recomputation of seconds shows no more here."""
    monkeypatch.setattr(reading, "MOST_STEPS", 8)


def in_outbox(tmp_path: Path, loss: float | None = None, **changes: Any) -> Path:
    home = Home(tmp_path / "agent")
    key = load_or_create_key(home)
    made = seed_honestly(
        results.make_result(key=key, cell=results.make_cell("mnist-dense"), nonce=NONCE)
    )
    if loss is not None:
        measured = made.measurement
        assert measured is not None
        assert measured.witness is not None
        *others, last = measured.witness.readings
        readings = (*others, last.model_copy(update={"loss": loss}))
        told = measured.witness.model_copy(update={"readings": readings})
        made = with_measurement(made, measured.model_copy(update={"witness": told}))
    return put(Outbox(home.outbox), made.model_copy(update=changes), key).path


def test_a_result_is_recomputed_offline(run: Callable[..., Ended], tmp_path: Path) -> None:
    ended = run(str(in_outbox(tmp_path)), "--recompute")
    assert ended.exit_code == 0, ended.output
    assert "its timed session, self-seeded: conformant" in ended.output
    verdict = "Genuine, in no log yet. This key ran this job. Speed and hardware: sender's word."
    assert ended.stdout.startswith(f"{verdict}\n")


def test_the_verdict_comes_first_and_the_table_with_all(
    run: Callable[..., Ended], tmp_path: Path
) -> None:
    file = str(in_outbox(tmp_path))
    assert run(file).stdout.splitlines() == [
        "Genuine, in no log yet. Speed and hardware: sender's word.",
        "--all lists what was checked, and each of 12 claims.",
    ]
    first, *lines = run(file, "--all").stdout.splitlines()
    assert first.startswith("Genuine, in no log yet.")
    assert sum(line.startswith("OK  ") for line in lines) == 2
    assert sum(line.startswith("not checked  ") for line in lines) == 11


def test_a_wrong_loss_does_not_hold(run: Callable[..., Ended], tmp_path: Path) -> None:
    file = str(in_outbox(tmp_path, loss=2.1))
    said = run(file, "--recompute")
    assert (said.exit_code, "NOT VALID" in said.stderr) == (1, True)
    assert said.stdout.startswith("Genuine, in no log yet. The recomputation gives other figures.")
    ended = run(file, "--recompute", "--json")
    assert ended.exit_code == 1
    document = json.loads(ended.stdout)
    assert [one["kind"] for one in document["recomputed"]] == ["wrong_result"]


def test_a_session_of_another_seed_shows_nothing(run: Callable[..., Ended], tmp_path: Path) -> None:
    ended = run(str(in_outbox(tmp_path, seed="0" * 32)), "--recompute")
    assert ended.exit_code == 0, ended.output
    assert "its timed session, self-seeded: unverified" in ended.output
    assert "Whether this key ran this job is not shown." in ended.output


def test_a_failed_repeat_shows_nothing(run: Callable[..., Ended], tmp_path: Path) -> None:
    home = Home(tmp_path / "agent")
    key = load_or_create_key(home)
    made = results.make_failure(key=key)
    ended = run(str(put(Outbox(home.outbox), made, key).path), "--recompute")
    assert ended.exit_code == 0, ended.output
    assert "Whether this key ran this job is not shown." in ended.output


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Real:
    folder = tmp_path_factory.mktemp("data")
    manifest, splits = datasets.full_mnist(folder)
    return folder, manifest, splits


def on_real_data(home: Home, splits: Any, nonce: str = NONCE) -> Path:
    key, cell = load_or_create_key(home), results.make_cell("mnist-dense", data="real")
    made = seed_honestly(results.make_result(key=key, cell=cell, nonce=nonce, witness=True))
    return put(Outbox(home.outbox), train_on(made, splits), key).path


def test_a_session_on_real_data_is_recomputed_where_the_data_is(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real: Real
) -> None:
    folder, manifest, splits = real
    monkeypatch.setattr(data, "load", partial(data.load, places=(folder,), manifest=manifest))
    file = on_real_data(Home(tmp_path / "agent"), splits)
    document = json.loads(run(str(file), "--recompute", "--json").stdout)
    assert [one["kind"] for one in document["recomputed"]] == ["conformant"]
    other = (splits[0][0][::-1], splits[0][1][::-1])
    file = on_real_data(Home(tmp_path / "agent"), (other, splits[1]))
    assert "other data than the workload's" in run(str(file), "--recompute").output


def test_without_the_data_the_session_is_unverified(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real: Real
) -> None:
    monkeypatch.setenv("BENCH_DATA_DIR", str(tmp_path / "empty"))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    # Under a nonce of its own: figures that were computed before stay in memory.
    file = on_real_data(Home(tmp_path / "agent"), real[2], nonce="9e" * 32)
    ended = run(str(file), "--recompute")
    assert ended.exit_code == 0, ended.output
    assert (
        "its timed session, self-seeded: unverified: mnist is not on this machine" in ended.output
    )
    assert "bench-agent data fetch mnist" in ended.output


def test_pretrained_weights_need_no_recomputation() -> None:
    """The server compares their losses with the wide range; generated ones it recomputes."""
    cell, pretrained = results.make_cell("resnet50-transfer"), "sha256:" + "0" * 64
    told = {"recipe_settings": {"frozen_weights": pretrained}}
    recomputations.require_level((), results.make_complete(cell, told), 3)
    with pytest.raises(InvalidProof, match="nothing about its session"):
        recomputations.require_level((), results.make_complete(cell), 3)


def more(part: int, **factors: float) -> Callable[[Figures], Figures]:
    def change(figures: Figures) -> Figures:
        readings = list(figures.readings)
        values = {name: times * getattr(readings[part], name) for name, times in factors.items()}
        readings[part] = readings[part].model_copy(update=values)
        return figures.model_copy(update={"readings": tuple(readings)})

    return change


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda said: said, "conformant"),
        (
            lambda said: said.model_copy(update={"start_loss": 1.000_01 * said.start_loss}),
            "wrong_result",
        ),
        (more(0, loss=1.000_01), "wrong_result"),
        (more(1, loss_high=1.000_01), "wrong_result"),
        (lambda said: said.model_copy(update={"readings": said.readings[:2]}), "wrong_result"),
    ],
)
def test_a_servers_recomputation_is_computed_again(
    change: Callable[[Figures], Figures], kind: str
) -> None:
    job = SessionJob(workload_named("mnist-dense"), NONCE, 128)
    said = recomputed(job, "1" * 32, "here", figures_of_job)
    assert said.figures is not None
    (compared,) = of_recomputations([said.model_copy(update={"figures": change(said.figures)})])
    assert compared.kind == kind
    assert " of mnist-dense" in compared.what


@pytest.mark.parametrize(("digest", "kind"), [(None, "conformant"), ("e" * 64, "wrong_result")])
def test_a_recomputation_of_other_data_is_wrong(
    monkeypatch: pytest.MonkeyPatch, real: Real, digest: str | None, kind: str
) -> None:
    folder, manifest, splits = real
    monkeypatch.setattr(data, "load", partial(data.load, places=(folder,), manifest=manifest))

    def trained(job: SessionJob) -> Figures:
        return figures(job.workload, job.nonce, job.batch_size, splits[0])

    job = SessionJob(workload_named("mnist-dense"), NONCE, 128, "real")
    said = recomputed(job, "1" * 32, "here", trained)
    right = {"data_digest": digest or seeded.data_digest(*splits)}
    (compared,) = of_recomputations([said.model_copy(update=right)])
    assert compared.kind == kind
    assert ("other data than the workload's" in compared.sentence) == (digest is not None)
