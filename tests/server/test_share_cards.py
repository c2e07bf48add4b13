"""Cards, badges and charts of comparisons: which bars they have, whose is marked, and the rank."""

import re
from typing import Any

import pytest
import resvg_py
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.catalogue.matrix import Device
from bench_server.answers import cell_figures, comparison, leaderboard
from bench_server.answers.board_filters import BoardFilters
from bench_server.db.store import Store
from bench_server.web import drawn_cards, share_cards, short_names

pytestmark = pytest.mark.sqlite
CUDA, METAL = Device(kind="cuda"), Device(kind="metal")
H200 = results.make_machine("AMD EPYC 9654 96-Core Processor", ("cuda", "NVIDIA H200", None))
RTX = results.make_machine("AMD Ryzen 9", ("cuda", "NVIDIA GeForce RTX 4090", None), seed=8)
M2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
H200_SLUG = "nvidia-h200"
SHORT_TITLE = "AMD EPYC, 2 cores (virtual machine), machine 03576cb7"


@pytest.fixture
def ids(post: Poster) -> dict[str, str]:
    """The RTX 4090 is fastest in a framework in which the H200 was not measured."""

    def made(name: str, recipe: str, machine: object, device: Device, step_ns: int) -> str:
        cell = results.make_cell(framework=name, recipe=recipe, device=device)
        return post.made(cell=cell, machine=machine, step_ns=step_ns)

    return {
        "h200": made("torch", "pipeline", H200, CUDA, 300_000),
        "h200 tuned": made("torch", "tuned", H200, CUDA, 200_000),
        "rtx": made("torch", "pipeline", RTX, CUDA, 280_000),
        "rtx jax": made("jax", "tuned", RTX, CUDA, 100_000),
        "m2": made("mlx", "tuned", M2, METAL, 900_000),
    }


def test_a_result_is_beside_others_in_its_set_up(ids: dict[str, str], store: Store) -> None:
    with store.reading() as session:
        card = share_cards.result_card(session, ids["h200"])
    assert re.fullmatch(r"NVIDIA H200 trains mnist-cnn at [0-9,]+ samples/s", card.title)
    assert card.line == "mnist-cnn, torch pipeline, batch 64: 2nd of 2 hardware"
    assert [(bar.label, bar.own, bar.note) for bar in card.bars] == [
        ("NVIDIA GeForce RTX 4090", False, None),
        ("NVIDIA H200", True, None),
    ]
    assert card.bars[1].size / card.bars[0].size == pytest.approx(28 / 30)


def test_hardware_at_its_best_names_each_set_up(ids: dict[str, str], store: Store) -> None:
    with store.reading() as session:
        card = share_cards.hardware_card(session, H200_SLUG)
        board = share_cards.board_card(session, BoardFilters.model_validate({}))
    assert card.title == "NVIDIA H200: 2nd of 3 hardware in mnist-cnn"
    assert card.line == "mnist-cnn, each hardware at its best"
    shown = [(bar.label.split()[-1], bar.note, bar.own) for bar in card.bars]
    assert shown == [
        ("4090", "jax tuned", False),
        ("H200", "torch tuned", True),
        ("GPU)", "mlx tuned", False),
    ]
    assert [bar.note for bar in board.bars] == [setup for _, setup, _ in shown]
    assert not any(bar.own for bar in board.bars)
    assert board.bars[0].label == "1. NVIDIA GeForce RTX 4090"
    assert board.foot == "the first 3 of 3 on the board"


def test_the_card_of_a_board_says_which_rows_it_has(ids: dict[str, str], store: Store) -> None:
    asked: dict[str, dict[str, object]] = {
        "mnist-cnn: hardware, each at its best": {},
        "mnist-cnn: set-ups": {"workload": "mnist-cnn", "group": "setup"},
        "With torch: mnist-cnn: machines": {"group": "machine", "framework": "torch"},
        "Trust level 1 or more: mnist-cnn: set-ups": {"group": "setup", "trust_level": 1},
    }
    with store.reading() as session:
        for line, filters in asked.items():
            card = share_cards.board_card(session, BoardFilters.model_validate(filters))
            assert card.line == line


def test_a_machines_card_is_about_the_workload_of_its_finding(post: Poster, store: Store) -> None:
    """Of two workloads the second alone has another machine of its kind."""
    both = results.make_cell(workload="fashion-mlp", device=CUDA, batch_size=128)
    identity = post.made(cell=results.make_cell(device=CUDA), machine=H200, step_ns=320_000)
    post.made(cell=both, machine=H200, step_ns=320_000)
    model = ("cuda", "NVIDIA H200", None)
    other = results.make_machine("AMD EPYC 9654 96-Core Processor", model, seed=9)
    post.made(cell=both, machine=other, step_ns=300_000)
    machine_id = post.http.get(f"/api/v1/results/{identity}").json()["machine_id"]
    with store.reading() as session:
        card = share_cards.machine_card(session, machine_id)
    assert "fashion-mlp" in card.title
    assert card.line.startswith("fashion-mlp, ")


def test_page_card_and_badge_of_a_machine_show_one_workload(post: Poster, store: Store) -> None:
    """The first of its workloads, although its hardware has a better rank in another one."""
    post.made(cell=results.make_cell(device=CUDA), machine=RTX, step_ns=160_000)
    identity = post.made(cell=results.make_cell(device=CUDA), machine=H200, step_ns=320_000)
    post.made(cell=results.make_cell(device=CUDA, precision="tf32"), machine=H200, step_ns=80_000)
    other = results.make_cell(workload="fashion-mlp", device=CUDA, batch_size=128)
    post.made(cell=other, machine=H200, step_ns=320_000)
    machine_id = post.http.get(f"/api/v1/results/{identity}").json()["machine_id"]
    page = post.http.get(f"/machines/{machine_id}").text
    words = "This NVIDIA H200 is the only one of its kind here (tensorflow naive, mnist-cnn)"
    (heading,) = re.findall("<h1><bdi>(.*?)</bdi></h1>", page)
    assert re.sub("<[^>]+>", "", heading) == words
    assert f'alt="Card: {words}; it trains 200,000 samples/s.' in page
    assert f"<code>{words}; it trains 200,000 samples/s." in page
    assert ": 200,000 samples/s in mnist-cnn with tensorflow naive." in page
    assert "200,000/s mnist-cnn" in post.http.get(f"/machines/{machine_id}/badge.svg").text
    with store.reading() as session:
        card = share_cards.machine_card(session, machine_id)
    assert (
        card.line == "mnist-cnn, tensorflow naive, batch 64: its hardware is 2nd of 2 in any set-up"
    )
    assert card.title == words
    assert card.foot == f"200,000 samples/s, machine {machine_id[:8]}"
    assert [bar.value for bar in card.bars] == ["400,000/s", "200,000/s"]


def test_a_machine_without_a_known_workload_has_neither_card_nor_badge(
    post: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_id = post.http.get(f"/api/v1/results/{post.made()}").json()["machine_id"]
    monkeypatch.setattr(cell_figures, "CATALOGUE", ())
    for picture in ("card.png", "badge.svg"):
        answer = post.http.get(f"/machines/{machine_id}/{picture}")
        assert (answer.status_code, answer.json()["field"]) == (404, "id"), picture


def test_the_card_of_the_home_page_has_its_finding_and_its_scores(
    ids: dict[str, str], post: Poster, store: Store
) -> None:
    """A hardware's badge has the score too."""
    post.baseline(H200_SLUG)
    badge = post.http.get("/hardware/apple-m2-max-30-core-gpu/badge.svg").text
    assert 'aria-label="M2 Max: 0.222× H200"' in badge
    page = post.http.get("/").text
    with store.reading() as session:
        card = share_cards.board_card(session, BoardFilters.model_validate({}), H200_SLUG)
    assert f"<h1>{card.title}</h1>" in page
    assert card.title.startswith("NVIDIA GeForce RTX 4090 trains 2.00 times as fast as ")
    assert card.line == "speed in multiples of NVIDIA H200"
    assert [(bar.label, bar.value) for bar in card.bars] == [
        ("NVIDIA GeForce RTX 4090", "2.00×"),
        ("NVIDIA H200", "1.00×"),
        ("Apple M2 Max (30-core GPU)", "0.222×"),
    ]


def test_the_card_of_a_comparison_has_its_finding(
    ids: dict[str, str], post: Poster, store: Store
) -> None:
    things = (H200_SLUG, "nvidia-geforce-rtx-4090")
    with store.reading() as session:
        card = share_cards.compare_card(comparison.compare(session, things))
    assert "NVIDIA GeForce RTX 4090" in card.title
    page = post.http.get(f"/compare?ids={','.join(things)}").text
    assert card.title in re.sub("<[^>]+>", "", page)
    assert "…" not in card_svg(card.title)


def test_a_card_has_its_address_and_the_day(ids: dict[str, str], post: Poster) -> None:
    seen: list[str] = []
    draw = resvg_py.svg_to_bytes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            resvg_py, "svg_to_bytes", lambda svg_string: seen.append(svg_string) or draw(svg_string)
        )
        post.http.get(f"/hardware/{H200_SLUG}/card.png")
        post.http.get("/card.png")
    for svg, address in zip(seen, (f"testserver/hardware/{H200_SLUG}", "testserver"), strict=True):
        assert re.search(rf">{address} · \d{{4}}-\d\d-\d\d</text>", svg)


@pytest.mark.parametrize(
    ("whole", "shorter", "shortest"),
    [
        ("Apple M4 Pro (20-core GPU)", "Apple M4 Pro (20-core GPU)", "M4 Pro"),
        ("Apple M4 Max (12-core CPU)", "Apple M4 Max (12-core CPU)", "M4 Max (CPU)"),
        (
            "NVIDIA GeForce RTX 4070 Ti SUPER Laptop",
            "RTX 4070 Ti SUPER Laptop",
            "RTX 4070 Ti SUPER Laptop",
        ),
        ("AMD EPYC 9654 96-Core Processor", "EPYC 9654 96-Core Processor", "EPYC 9654"),
        ("Intel Core i7-8700", "Intel Core i7-8700", "i7-8700"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell…", None),
    ],
)
def test_a_long_name_loses_words_and_no_letters(
    whole: str, shorter: str, shortest: str | None
) -> None:
    assert short_names.name(whole, 30) == shorter
    assert shortest is None or short_names.name(whole) == shortest


def card_svg(title: str) -> str:
    return drawn_cards.svg(drawn_cards.Card(title, "", (), ""), "")


@pytest.mark.parametrize(
    "title",
    [
        SHORT_TITLE,
        f"{SHORT_TITLE} trains 1.95 times as fast as NVIDIA GeForce RTX 4090",
        "NVIDIA GeForce RTX 4090 Laptop GPU against Apple M2 Max (30-core GPU) and 3 more",
        "ABCDEFGHKNOPQ " * 8,
        "OOOOOOOOOOOOQQQQQQQQQQQGGGGGG",
        "DGHNOQU&+=#<>~" * 3,
        "rt" * 60,
        "ПРОЦЕССОР ЖЩШЮ " * 5,
        "①②③④⑤⑥⑦⑧⑨" * 5,
        "—" * 40,
    ],
)
def test_a_title_fits_its_card(title: str) -> None:
    """A cover of the right margin, in the colour of the background, hides nothing."""
    cover = '<rect x="1170" y="80" width="30" height="110" fill="#fcfcfa"/></svg>'
    svg = card_svg(title)
    drawn, covered, empty, dots = (
        bytes(resvg_py.svg_to_bytes(svg_string=one))
        for one in (svg, svg.replace("</svg>", cover), card_svg(""), card_svg("…"))
    )
    assert drawn == covered
    assert drawn not in (empty, dots)
    whole = " ".join(re.findall('font-weight="700">([^<]+)</text>', svg)).strip()
    assert title != SHORT_TITLE or whole == title


def test_a_card_says_which_log_entries_it_rests_on(
    ids: dict[str, str], post: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    def png(*card: Any) -> bytes:
        drawn.append(drawn_cards.svg(*card))
        return b""

    monkeypatch.setattr("bench_server.web.routes.cards.drawn_cards.png", png)
    for path in ("", f"/results/{ids['rtx']}", f"/hardware/{H200_SLUG}"):
        answer = post.http.get(f"{path}/card.png").raise_for_status()
        entries = int(answer.headers["Trainmark-As-Of"])
        assert entries >= 5
        log = f"From the first {entries} entries of the log at testserver/log"
        assert f">{log}<" in drawn.pop(), path


def test_cards_answer_and_wrong_ones_do_not(
    ids: dict[str, str], post: Poster, store: Store
) -> None:
    machine_id = post.http.get(f"/api/v1/results/{ids['m2']}").json()["machine_id"]
    failed = post(results.make_failure())
    with store.reading() as session:
        card = share_cards.result_card(session, failed)
    assert (card.bars, card.foot) == ((), "crashed during timing")
    for path in (
        *("/card.png", "/card.png?workload=fashion-mlp", "/card.png?group=setup&device=cuda"),
        *("/workloads/mnist-cnn/card.png", f"/hardware/{H200_SLUG}/card.png"),
        *(f"/machines/{machine_id}/card.png", f"/results/{ids['m2']}/card.png"),
        f"/compare/card.png?ids={H200_SLUG},nvidia-geforce-rtx-4090",
    ):
        assert post.http.get(path).headers["content-type"] == "image/png", path
    for path, status in (
        *(("/card.png?workload=nope", 422), ("/workloads/nope/card.png", 404)),
        *(("/hardware/nope/card.png", 404), ("/machines/0123456789abcdef/card.png", 404)),
    ):
        assert post.http.get(path).status_code == status, path


def test_a_machines_badge_has_its_figure_of_a_board_without_reading_boards(
    post: Poster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A larger batch is faster, and is on no board by default."""
    identity = post.made(cell=results.make_cell(device=CUDA), machine=H200, step_ns=320_000)
    post.made(cell=results.make_cell(device=CUDA, batch_size=1024), machine=H200, step_ns=1_024_000)

    def read(*_: object) -> None:
        pytest.fail("a badge needs no board")

    monkeypatch.setattr(leaderboard, "rankings", read)
    machine = post.http.get(f"/api/v1/results/{identity}").json()["machine_id"]
    with store.reading() as session:
        assert "200,000/s mnist-cnn" in share_cards.machine_badge(session, machine)
        assert "H200: 200,000/s mnist-cnn" in share_cards.hardware_badge(session, H200_SLUG)
