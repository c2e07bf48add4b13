"""What waits for a second owner is on no card, badge or feed; and what a crowd of keys changes."""

from dataclasses import asdict
from datetime import UTC, datetime

import pytest
from fastapi import FastAPI
from tests.fakes import results
from tests.fakes.client import Poster, get
from tests.fakes.crowds import BRANDS, crowd
from tests.server.test_ranks import decide, rows, send

from bench_protocol.payload import acts
from bench_server.answers.board_filters import BoardFilters
from bench_server.answers.comparison import compare
from bench_server.db.store import Store
from bench_server.web import share_cards

SLUG, RATE = "amd-ryzen-7", "128,000"
OTHERS = ("amd-ryzen-9", "amd-ryzen-5")
BOARDS = tuple(
    {"workload": workload, "group": group, **more}
    for workload in (None, "mnist-cnn")
    for group in ("hardware", "setup", "machine")
    for more in ({}, {"device": "cpu"})
)


def sent_by_one(post: Poster) -> str:
    """Two owners back one hardware; another owner alone is twice as fast on another. The id of that
    one's result."""
    for seed in (2, 3):
        send(post, seed, 1_000_000, "AMD Ryzen 9")
    send(post, 4, 2_000_000, "AMD Ryzen 5")
    return send(post, 5, 500_000, "AMD Ryzen 7")


def cards(store: Store, result: str, machine: str) -> dict[str, share_cards.Card]:
    """Every card of the site."""
    with store.reading() as session:
        return {
            **{
                f"board {filters}": share_cards.board_card(
                    session, BoardFilters.model_validate(filters)
                )
                for filters in BOARDS
            },
            **{slug: share_cards.hardware_card(session, slug) for slug in (*OTHERS, SLUG)},
            "comparison": share_cards.compare_card(compare(session, (SLUG, OTHERS[0]))),
            "machine": share_cards.machine_card(session, machine),
            "result": share_cards.result_card(session, result),
        }


def test_a_held_figure_is_on_no_card_and_no_badge(post: Poster, store: Store) -> None:
    result = sent_by_one(post)
    machine = get(post.http, f"/results/{result}")["machine_id"]
    found = cards(store, result, machine)
    assert {name for name, card in found.items() if RATE in str(asdict(card))} == set()
    for name, card in found.items():
        assert not any("Ryzen 7" in bar.label for bar in card.bars), name
        own = name in ("comparison", "machine", "result", SLUG)
        assert own or "Ryzen 7" not in card.title, name
        assert ("Ryzen 7 is held: needs a second owner" in card.title) is own, name
        assert "Ryzen 9" in str(card.bars) or own, name
    # With a baseline a badge has the score instead of the rate.
    badges = [f"/hardware/{SLUG}/badge.svg", f"/machines/{machine}/badge.svg"]
    assert all("held: needs a second owner" in post.http.get(one).text for one in badges)
    post.baseline("amd-ryzen-5")
    assert all("held: needs a second owner" in post.http.get(one).text for one in badges)
    send(post, 6, 500_000, "AMD Ryzen 7")
    for name, card in cards(store, result, machine).items():
        assert any("Ryzen 7" in bar.label or bar.own for bar in card.bars), name
    assert all("4.00×" in post.http.get(one).text for one in badges)


def test_a_held_figure_is_in_no_feed(post: Poster) -> None:
    result = sent_by_one(post)
    machine = get(post.http, f"/results/{result}")["machine_id"]
    owner = acts.first_owner(results.key_id(results.private_key(5)))
    pages = ("", f"/hardware/{SLUG}", f"/owners/{owner}", f"/machines/{machine}")
    feeds = [f"{page}/feed.atom" for page in pages]
    texts = [post.http.get(one).raise_for_status().text for one in feeds]
    assert [RATE in text or result in text for text in texts] == [False] * 4
    assert "64,000" in texts[0]
    send(post, 6, 500_000, "AMD Ryzen 7")
    assert all(result in post.http.get(one).text for one in feeds)


@pytest.mark.parametrize("step_ns", [600_000, 1_900_000])
def test_forty_keys_of_one_network_move_nothing_that_others_back(
    post: Poster, app: FastAPI, store: Store, step_ns: int
) -> None:
    """Faster or slower ones, in the confirmed set-up itself, in another of its hardware, and where
    one new owner was alone. Figures of new owners alone they may move."""
    confirmed = (BRANDS[0], "AMD Ryzen 9")
    for seed, (brand, ns) in enumerate(zip(confirmed * 2, (1_000_000, 3_000_000) * 2, strict=True)):
        send(post, seed + 2, ns + seed, brand, network=seed)
        owner = acts.first_owner(results.key_id(results.private_key(seed + 2)))
        decide(store, "confirm", owner=owner)
    send(post, 7, 4_000_000, BRANDS[1], network=7)

    def speeds(query: str = "") -> dict[tuple[str, str], float]:
        asked = f"/leaderboard?workload=mnist-cnn&group=setup{query}"
        ranked = [row for row in get(post.http, asked)["rows"] if row["rank"]]
        return {(row["hardware"], row["recipe"]): row["samples_per_second"] for row in ranked}

    first, before = rows(post)[0], speeds("&backing=confirmed")
    fastest = max(speeds().values())
    assert [*before] == [("Intel Core i7-8700", "naive"), ("AMD Ryzen 9", "naive")]
    assert first[:2] == (1, "Intel Core i7-8700")
    now = datetime(2026, 11, 21, 5, tzinfo=UTC)
    app.state.clock = lambda: now
    crowd(post.http, store, range(100, 140), step_ns, now)
    assert speeds("&backing=confirmed") == pytest.approx(before, rel=0.02)
    assert max(speeds().values()) == pytest.approx(fastest, rel=0.02)
    assert [row for row in rows(post) if row[0] == 1] == [first]
    held = {row[1] for row in rows(post) if row[4]}
    assert held == ({"Intel Core i3-8100", "Intel Core i7-8700"} if step_ns < 1_000_000 else set())
