"""What waits for a second owner is on no card, badge or feed; and what a crowd of keys changes."""

import base64
import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select
from tests.fakes import results, said
from tests.fakes.client import Poster, get
from tests.fakes.crowds import BRANDS, crowd
from tests.fakes.integrity import audited
from tests.server.test_ranks import decide, rows, send

from bench_protocol.payload import acts
from bench_protocol.payload.acts import Act
from bench_server.answers.board_filters import BoardFilters
from bench_server.answers.comparison import compare
from bench_server.db.store import Store
from bench_server.db.tables import Owner
from bench_server.ingest import key_registry
from bench_server.projection import reindex
from bench_server.web import share_cards

SLUG, RATE = "amd-ryzen-7", "128,000"
OTHERS = ("amd-ryzen-9", "amd-ryzen-5")
BOARDS = tuple(
    {"workload": workload, "group": group, **more}
    for workload in (None, "mnist-cnn")
    for group in ("hardware", "setup", "machine")
    for more in ({}, {"device": "cpu"})
)


def owner_of(seed: int) -> str:
    return acts.first_owner(results.key_id(results.private_key(seed)))


def sent_by_one(post: Poster) -> str:
    """Two owners back one hardware; another is alone, twice as fast: the id of that result."""
    for seed in (2, 3):
        send(post, seed, 1_000_000, "AMD Ryzen 9")
    send(post, 4, 2_000_000, "AMD Ryzen 5")
    return send(post, 5, 500_000, "AMD Ryzen 7")


def cards(store: Store, result: str, machine: str) -> dict[str, share_cards.Card]:
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
    machines = "/?workload=mnist-cnn&group=machine"
    for page in (f"/results/{result}", "/workloads/mnist-cnn", f"/hardware/{SLUG}", machines):
        assert "held: needs a second owner" in post.http.get(page).text.lower(), page
    assert "No score: its figures are held" in post.http.get(f"/hardware/{SLUG}").text
    board = get(post.http, "/leaderboard?workload=mnist-cnn&group=machine")
    assert [row["held"] for row in board["rows"]] == [True, False, False, False]
    found = cards(store, result, machine)
    assert {name for name, card in found.items() if RATE in str(asdict(card))} == set()
    for name, card in found.items():
        assert not any("Ryzen 7" in bar.label for bar in card.bars), name
        own = name in ("comparison", "machine", "result", SLUG)
        assert own or "Ryzen 7" not in card.title, name
        assert ("Ryzen 7 is held: needs a second owner" in card.title) is own, name
        assert "Ryzen 9" in str(card.bars) or own, name
    # With a baseline a hardware's badge has the score instead of the rate.
    badges = [f"/hardware/{SLUG}/badge.svg", f"/machines/{machine}/badge.svg"]
    assert all("held: needs a second owner" in post.http.get(one).text for one in badges)
    post.baseline("amd-ryzen-5")
    assert all("held: needs a second owner" in post.http.get(one).text for one in badges)
    send(post, 6, 500_000, "AMD Ryzen 7")
    for name, card in cards(store, result, machine).items():
        assert any("Ryzen 7" in bar.label or bar.own for bar in card.bars), name
    of_hardware, of_machine = (post.http.get(one).text for one in badges)
    assert "4.00× Ryzen 5" in of_hardware
    assert "Ryzen 7 mnist-cnn: 1.00× the median of 2" in of_machine


def test_a_held_figure_is_in_no_feed(post: Poster) -> None:
    result = sent_by_one(post)
    machine = get(post.http, f"/results/{result}")["machine_id"]
    owner = owner_of(5)
    pages = ("", f"/hardware/{SLUG}", f"/owners/{owner}", f"/machines/{machine}")
    feeds = [f"{page}/feed.atom" for page in pages]
    texts = [post.http.get(one).raise_for_status().text for one in feeds]
    assert [RATE in text or result in text for text in texts] == [False] * 4
    assert "64,000" in texts[0]
    send(post, 6, 500_000, "AMD Ryzen 7")
    assert all(result in post.http.get(one).text for one in feeds)


@pytest.mark.parametrize("step_ns", [600_000, 1_900_000])
@pytest.mark.parametrize("kind", ["confirmed", "new"])
def test_forty_keys_of_one_network_move_nothing_that_others_back(
    post: Poster, app: FastAPI, store: Store, kind: str, step_ns: int
) -> None:
    """Faster or slower ones, in the first set-up itself, in another of its hardware, and where one
    new owner was alone. Two owners are behind each of two figures, and differ by 1 %. All of it,
    holds too, follows from the log."""
    firsts = (BRANDS[0], "AMD Ryzen 9")
    for seed, (brand, ns) in enumerate(zip(firsts * 2, (1_000_000, 3_000_000) * 2, strict=True)):
        send(post, seed + 2, ns + seed * 5_000, brand, network=seed)
        if kind == "confirmed":
            decide(store, "confirm", owner=owner_of(seed + 2))
    send(post, 7, 4_000_000, BRANDS[1], network=7)

    def speeds() -> dict[tuple[str, str], float]:
        asked = "/leaderboard?workload=mnist-cnn&group=setup"
        ranked = [row for row in get(post.http, asked)["rows"] if row["rank"]]
        return {(row["hardware"], row["recipe"]): row["samples_per_second"] for row in ranked}

    first, before = rows(post)[0], speeds()
    assert first[:2] == (1, "Intel Core i7-8700")
    now = datetime(2026, 11, 21, 5, tzinfo=UTC)
    app.state.clock = lambda: now
    with TestClient(post.http.app, client=("192.0.2.1", 1)) as network:  # type: ignore[attr-defined]
        crowd(network, store, range(100, 140), step_ns, now)
    after = speeds()
    within = 1e-9 if kind == "confirmed" else 0.0101
    assert {name: after[name] for name in before} == pytest.approx(before, rel=within)
    assert [row for row in rows(post) if row[0] == 1] == [first]
    held = {row[1:3] for row in rows(post) if row[4]}
    assert held == ({("Intel Core i7-8700", "tuned")} if step_ns < 1_000_000 else set())
    counts = "42 new; 3 count: one of each area, undisturbed ones first"
    assert (counts in post.http.get("/?workload=mnist-cnn").text) is (kind == "new")
    assert audited(store).faults == ()
    reindex.reindex(store)
    assert speeds() == after


def test_an_enrollment_says_the_area_of_a_new_owner_and_no_address(
    post: Poster, store: Store
) -> None:
    """An owner's area is that of its first key's network; an unknown network has none."""
    with store.writing() as session:
        invite = key_registry.invite(session, said.NOW, "lab", timedelta(days=1))
        again = key_registry.invite(session, said.NOW, "lab", timedelta(days=1))
    hosts = {
        2: ("198.51.100.7", None),
        3: ("198.51.100.7", None),
        4: ("2001:db8::1", None),
        5: ("2001:db8::ffff:2", None),
        6: ("proxy", None),
        7: ("198.51.100.7", invite),
        8: ("203.0.113.9", again),
    }
    for seed, (host, code) in hosts.items():
        with TestClient(post.http.app, client=(host, 1)) as there:  # type: ignore[attr-defined]
            body = json.loads(results.enrollment(results.private_key(seed))) | {"invite": code}
            there.post("/api/v1/keys", json=body).raise_for_status()
    acts_of_log = [
        Act.parse(payload)
        for record in get(post.http, "/log/entries")["records"]
        if b'"locate"' in (payload := base64.b64decode(record["envelope"]["payload"]))
    ]
    areas = {act.owner: act.area for act in acts_of_log}
    owners = [*map(owner_of, (2, 3, 4, 5)), "lab"]
    assert [act.owner for act in acts_of_log] == owners
    assert areas[owners[0]] == areas[owners[1]] == areas["lab"] != areas[owners[2]]
    assert areas[owners[2]] == areas[owners[3]]
    with store.reading() as session:
        stored = session.exec(select(Owner.label, Owner.area)).all()
    assert {label: area for label, area in stored if area is not None} == areas
    assert "198.51" not in post.http.get("/api/v1/log/entries").text
    assert audited(store).faults == ()
