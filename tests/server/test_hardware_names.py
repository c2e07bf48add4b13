"""A key that nobody knows neither renames a hardware nor joins it under a name that looks alike."""

import itertools
import re

import pytest
from tests.fakes import results, said
from tests.fakes.client import Poster, get
from tests.fakes.projected import project, rows
from tests.server.test_ranks import decide

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload import acts
from bench_protocol.payload.machine import Machine
from bench_server.db.store import Store
from bench_server.projection import reindex

CUDA = results.make_cell(device=Device(kind="cuda"))
# Written as escapes where they look like something else.
OTHERS = [
    *("{} – FAKE 5", "!!! {} !!!", "«{}»", "{} – x", "{}, 2 cores", "({})", "{}.", "{} @ x"),
    *("\u6469\u5c14\u7ebf\u7a0b", "\u4e2d\u6587 {}", "Unknown"),
]
# One of each kind: tests/protocol/test_names.py has them all.
REFUSED = {
    "{}\u202e\u2066": "U+202E, which is invisible or reorders text",
    "{}\u00a05": "U+00A0, which is a space other than U+0020",
    "{}\u0378": "U+0378, which is not assigned",
    "{}\u0007": "U+0007, which is a control character",
    "{} \u0410": "mixes letters of Cyrillic and Latin",
    "!!!": "no letter or digit",
}
SAME = ["{lower}", "{upper}", "  {} (TM) ", "{wide}"]


def sent(post: Poster, name: str, seed: int, step_ns: int = 1_000_000) -> tuple[int, str]:
    """Status and text of the answer to a fresh key's result of a GPU with this name."""
    key = results.private_key(seed)
    post.enroll(key)
    named = results.make_machine(gpu=("cuda", "NVIDIA X", None), seed=seed)
    gpu = named.gpus[0].model_copy(update={"name": name})
    machine: Machine = named.model_copy(update={"gpus": (gpu,)})
    made = results.make_result(key=key, cell=CUDA, machine=machine, step_ns=step_ns)
    answer = post.raw(results.sealed(post.bound(made), key))
    return answer.status_code, answer.text


def shown(post: Poster, slug: str) -> dict[str, object]:
    """The name of a hardware wherever it is shown, and its owners."""

    def text(path: str) -> str:
        answer = post.http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def title(path: str) -> str:
        found = re.search("<title>(.*?)</title>", text(path), re.DOTALL)
        assert found
        return found[1]

    board = [
        (row["hardware"], row["owners"])
        for row in get(post.http, f"/leaderboard?workload=mnist-cnn&hardware={slug}")["rows"]
    ]
    return {
        "board": board,
        "search": get(post.http, "/leaderboard?q=" + slug)["rows"][0]["hardware"],
        "API": get(post.http, f"/hardware/{slug}")["name"],
        "results": {
            row["hardware"] for row in get(post.http, f"/results?hardware={slug}")["results"]
        },
        "page": title(f"/hardware/{slug}"),
        "feed": title(f"/hardware/{slug}/feed.atom"),
        "badge": title(f"/hardware/{slug}/badge.svg"),
        "CSV": text(f"/api/v1/leaderboard.csv?workload=mnist-cnn&hardware={slug}").count(slug),
    }


@pytest.mark.parametrize("name", ["NVIDIA H200", "NVIDIA X9000"])
def test_no_fresh_key_defaces_a_hardware(post: Poster, store: Store, name: str) -> None:
    for seed in range(1, 6):
        assert sent(post, name, seed)[0] == 201
    slug = name.lower().replace(" ", "-")
    before = shown(post, slug)
    assert before["API"] == name
    fresh = itertools.count(50)
    for other in OTHERS:
        assert sent(post, other.format(name), next(fresh), 1_100_000)[0] == 201, other
    for other, problem in REFUSED.items():
        status, text = sent(post, other.format(name), next(fresh), 1_100_000)
        assert (status, problem in text, "machine.gpus.0.name" in text) == (422, True, True), text
    assert shown(post, slug) == before
    wide = name.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
    spelled = {"lower": name.lower(), "upper": name.upper(), "wide": wide}
    for same in SAME:
        assert sent(post, same.format(name, **spelled), next(fresh), 1_100_000)[0] == 201
    assert shown(post, slug)["board"] == [(name, 5 + len(SAME))]
    assert len(get(post.http, "/hardware")["hardware"]) == len(OTHERS) + 1
    same_again(store)


def same_again(store: Store) -> None:
    project(store)
    before = rows(store)
    reindex.reindex(store)
    assert rows(store) == before


def test_the_best_evidence_names_a_hardware(post: Poster, store: Store) -> None:
    def name() -> str:
        project(store)
        (shown,) = {row["hardware"] for table in rows(store)[:2] for row in table}
        return str(shown)

    machine, other = results.make_machine("ACME X9000"), results.make_machine("aCME x9000", seed=2)
    post(results.make_failure(machine=machine, challenge=None))
    assert name() == "ACME X9000"  # the first, while none is ranked
    key = results.private_key(2)
    post.enroll(key)
    second = post.made(key=key, machine=other, step_ns=500_000)
    assert name() == "aCME x9000"
    for seed, spelling in ((3, "Acme X9000"), (4, "Acme(TM)  x9000")):
        key, machine = results.private_key(seed), results.make_machine(spelling, seed=seed)
        post.enroll(key)
        post.made(key=key, machine=machine, cell=results.make_cell("fashion-mlp"))
    assert name() == "aCME x9000"
    fourth = acts.first_owner(results.key_id(key))
    decide(store, "confirm", owner=fourth)
    assert name() == "Acme x9000"
    same_again(store)
    decide(store, "doubt", owner=fourth)
    assert name() == "aCME x9000"
    assert said.act(post, "withdraw", result=second, seed=2).status_code == 200
    assert name() == "Acme X9000"
    same_again(store)
