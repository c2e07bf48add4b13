"""What a machine's page, card and badge say of it beside the machines of its kind."""

import re

import pytest
from tests.fakes import results
from tests.fakes.client import Poster, get

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.rank_text import rank_words
from bench_server.db.store import Store
from bench_server.web import share_cards

pytestmark = pytest.mark.sqlite
CUDA = Device(kind="cuda")
GPU, CPU = "NVIDIA H200", "AMD EPYC 9654 96-Core Processor"


def sent(post: Poster, step_us: int, seed: int, owner: int = 1, **cell: object) -> str:
    """A result of a machine; its machine's id."""
    post.enroll(results.private_key(owner))
    result = post.made(
        cell=results.make_cell(**{"device": CUDA} | cell),
        machine=results.make_machine(CPU, ("cuda", GPU, None), seed=seed),
        step_ns=step_us * 1000,
        key=results.private_key(owner),
    )
    machine: str = get(post.http, f"/results/{result}")["machine_id"]
    return machine


def text_of(post: Poster, machine: str) -> str:
    return re.sub("<[^>]+>", "", post.http.get(f"/machines/{machine}").text)


@pytest.mark.parametrize("count", [4, 5])
def test_a_machine_is_compared_with_the_median_of_those_that_are_drawn(
    post: Poster, store: Store, count: int
) -> None:
    """Of four, with the slower of the two in the middle. One owner has three of them, of which the
    figure of the hardware counts one."""
    times = (310, 318, 330, 334, 350)[:count]
    machine, *_ = (
        sent(post, step_us, seed, owner=max(1, seed - 4))
        for seed, step_us in enumerate(times, start=3)
    )
    text, page = text_of(post, machine), post.http.get(f"/machines/{machine}").text
    drawn = re.findall(r"<title>(?:this )?machine.*?: ([0-9,]+) samples/s</title>", page)
    speeds = sorted(float(one.replace(",", "")) for one in drawn)
    assert len(speeds) == count
    ratio = people.times(speeds[-1] / speeds[(count - 1) // 2])
    assert ratio == people.times(times[count // 2] / times[0])
    faster = f"{100 * (float(ratio) - 1):.0f} % faster than"
    sentence = f"This {GPU} is {faster} the median of {count} like it (tensorflow naive, mnist-cnn)"
    assert text.count(sentence) == 2  # heading, sentence to share
    badge = f'aria-label="H200 mnist-cnn: {ratio}× the median of {count}"'
    post.baseline("nvidia-h200")
    assert badge in post.http.get(f"/machines/{machine}/badge.svg").text
    with store.reading() as session:
        card = share_cards.machine_card(session, machine)
    assert card.title == sentence


def test_a_machine_alone_has_no_place(post: Poster, store: Store) -> None:
    """On its GPU and on its processor it is two of the hardware on the board."""
    sent(post, 900, 3, device=Device(kind="cpu"))
    machine = sent(post, 300, 3)
    (place,) = get(post.http, f"/machines/{machine}")["places"]
    assert (place["ranked"], place["alone"]) == (2, True)
    assert rank_words(place) == "in the only machine measured on mnist-cnn here"
    text = text_of(post, machine)
    assert f"This {GPU} is the only machine here (tensorflow naive, mnist-cnn)" in text
    assert "1st of" not in text
    with store.reading() as session:
        card = share_cards.machine_card(session, machine)
    assert card.line == "mnist-cnn, tensorflow naive, batch 64"
    sent(post, 600, 4, device=Device(kind="cpu"))
    text = text_of(post, machine)
    assert f"{GPU} is 1st of 2 on mnist-cnn, by speed." in text
    assert "the only machine here" not in text


@pytest.mark.parametrize("described", [True, False])
def test_a_processor_is_told_of_the_faster_gpu_beside_it(post: Poster, described: bool) -> None:
    """By its own description, or as Apple's chip; and a fastest machine that none is known."""
    brand, gpu = "Apple M2 Max", ("metal", "Apple M2 Max", 30)
    machines = []
    for seed, device, step_ns in ((3, "metal", 250_000), (4, "cpu", 1_000_000)):
        result = post.made(
            cell=results.make_cell(device=Device(kind=device)),  # type: ignore[arg-type]
            machine=results.make_machine(brand, gpu if described or seed == 3 else None, seed=seed),
            step_ns=step_ns,
        )
        machines.append(get(post.http, f"/results/{result}")["machine_id"])
    fastest, processor = (text_of(post, machine) for machine in machines)
    assert "No faster set-up is known here." in fastest
    hint = (
        r"TensorFlow naive on the Apple M2 Max \(30-core GPU\) is 4\.00 times as fast "
        r"\(3\.\d\d to 4\.\d\d\): bench-agent run --framework tensorflow --device metal"
    )
    assert re.search(hint, processor)


def test_a_machine_has_its_largest_batches_with_their_memory(post: Poster) -> None:
    """A processor's memory is that of the process."""
    machine, expected = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30)), []
    for kind, peak in (("cpu", "host_peak_memory_bytes"), ("metal", "peak_memory_bytes")):
        for batch in (64, 1024, 128):
            device = Device(kind=kind)  # type: ignore[arg-type]
            cell = results.make_cell("fashion-mlp", device=device, batch_size=batch)
            memory = {peak: batch * 2**20}
            measured = results.make_measurement(cell, 500_000, **memory)
            result = post.made(cell=cell, machine=machine, measurement=measured)
            if batch == 1024:
                expected.append((kind, batch, batch * 2**20, result))
    found = get(post.http, f"/results/{result}")
    assert found["peak_memory_bytes"] == 128 * 2**20
    answer = get(post.http, f"/machines/{found['machine_id']}")["largest_batches"]
    names = ("device", "batch_size", "peak_memory_bytes", "result_id")
    assert sorted(tuple(one[name] for name in names) for one in answer) == sorted(expected)
    page = re.sub("<.*?>", "", post.http.get(f"/machines/{found['machine_id']}").text)
    assert "tensorflow on metal: 1,024 in 1.0 GiB" in page
