"""A workload of tokens: every answer and page has its speed in tokens per second."""

import re
from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.client import Poster, get
from tests.fakes.fleet.hardware import CUDA, environment_of

from bench_protocol.catalogue.matrix import Device

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
GPU, ENVIRONMENT = Device(kind="cuda"), environment_of(CUDA[1])
H200 = results.make_machine("AMD EPYC 9654 96-Core Processor", ("cuda", "NVIDIA H200", None))
# 8 samples of 256 tokens in 7.9 ms.
TOKENS = 8 * 256 / 7.9e-3
SLUG = "nvidia-h200"


@pytest.fixture
def site(post: Poster) -> Poster:
    post.baseline(SLUG)
    for framework in ("torch", "jax"):
        for recipe in ("naive", "tuned"):
            for batch, step_ns in ((8, 7_900_000), (64, 48_000_000)):
                cell = results.make_cell(
                    "gpt-char", framework=framework, recipe=recipe, batch_size=batch, device=GPU
                )
                post.made(cell=cell, machine=H200, step_ns=step_ns, environment=ENVIRONMENT)
    return post


def rated(answer: Any) -> list[dict[str, Any]]:
    """All objects with a speed."""
    if isinstance(answer, list):
        return [one for each in answer for one in rated(each)]
    if not isinstance(answer, dict):
        return []
    inner = [one for each in answer.values() for one in rated(each)]
    return [answer, *inner] if "samples_per_second" in answer else inner


def test_every_answer_has_tokens_beside_samples(site: Poster) -> None:
    machine = get(site.http, "/results")["results"][0]["machine_id"]
    chosen = "workload=gpt-char&framework=torch&recipe=tuned&batch_size=8"
    for address in (
        "/results",
        "/leaderboard?workload=gpt-char&include=others",
        f"/hardware/{SLUG}",
        f"/machines/{machine}",
        f"/machines/{machine}/history?{chosen}",
        f"/compare?ids={SLUG},{machine}",
        "/frameworks",
        "/batch-size",
        "/trends",
    ):
        found = rated(get(site.http, address))
        assert found, address
        for one in found:
            assert one["unit"] == "token", address
            assert one["tokens_per_second"] == pytest.approx(256 * one["samples_per_second"])
    table = site.http.get("/api/v1/leaderboard.csv?workload=gpt-char").text
    assert str(int(TOKENS)) in table


def test_every_page_shows_tokens(site: Poster) -> None:
    row = get(site.http, "/results")["results"][0]
    words = f"{TOKENS:,.0f}"
    for address in (
        "/?workload=gpt-char",
        "/?workload=gpt-char&group=setup",
        "/workloads/gpt-char",
        "/results",
        f"/hardware/{SLUG}",
        f"/machines/{row['machine_id']}",
        f"/compare?ids={SLUG},{row['machine_id']}",
        "/frameworks",
        "/batch-size",
        "/trends",
        "/feed.atom",
        f"/machines/{row['machine_id']}/badge.svg",
    ):
        shown = site.http.get(address).text
        text = re.sub(r"\s+", " ", re.sub("<.*?>", " ", shown))
        assert words in shown, address
        assert re.search("[Tt]okens(/s| per second)", shown), address
        assert f"{TOKENS / 256:,.0f}" not in text.replace(words, ""), address
