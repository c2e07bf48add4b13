"""An owner's machines: what the last update changed, and lists by owner, id and time."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster, get
from tests.fakes.statements import statements

from bench_protocol.catalogue.matrix import Device
from bench_server.answers import owners
from bench_server.db.store import Store
from bench_server.ingest import moderation

NOW = datetime(2026, 10, 1, tzinfo=UTC)
CUDA = Device(kind="cuda")
LAB, OTHER = "Basel lab", results.private_key(2)
CHANGED, FEW, OTHERS = (
    results.make_machine(brand, ("cuda", gpu, None), seed=seed)
    for brand, gpu, seed in (
        ("AMD EPYC 9654", "NVIDIA H200", 3),
        ("AMD Ryzen 9", "NVIDIA T4", 4),
        ("AMD EPYC 7702", "NVIDIA B200", 5),
    )
)


def run(
    post: Poster,
    machine: Any,
    day: int,
    driver: str,
    step_ns: int,
    recipe: str = "naive",
    **more: Any,
) -> str:
    gpus = (machine.gpus[0].model_copy(update={"driver": driver}),)
    return post.made(
        cell=results.make_cell(device=CUDA, recipe=recipe),
        machine=machine.model_copy(update={"gpus": gpus}),
        step_ns=step_ns + day,
        clocks=results.clocks_from(day),
        **more,
    )


@pytest.fixture
def lab(post: Poster, store: Store) -> dict[str, str]:
    """A lab with a machine that a driver made faster, and one with two runs; and somebody else.
    The ids of a result of each."""
    for key, label in ((results.private_key(1), LAB), (OTHER, "Ada")):
        post.enroll(key)
        whose: dict[str, Any] = {"key": results.key_id(key), "owner": label}
        moderation.decide(store, AUTHORITY, NOW, "assign", **whose)
    ids = {}
    for day in range(1, 11):
        new = day > 5
        ids["changed"] = run(
            post, CHANGED, day, "560.35" if new else "550.9", 80_000 if new else 100_000
        )
    for day, driver in ((1, "550.9"), (2, "560.35")):
        ids["few"] = run(post, FEW, day, driver, 200_000)
    ids["other"] = run(post, OTHERS, 1, "560.35", 50_000, key=OTHER)
    return ids


def machine_of(http: TestClient, result: str) -> str:
    return str(get(http, f"/results/{result}")["machine_id"])


def test_each_cell_has_the_change_of_the_last_update_as_the_machines_history_has_it(
    http: TestClient, lab: dict[str, str]
) -> None:
    answer = get(http, "/owners/Basel%20lab")
    assert (answer["owner"], answer["machine_count"]) == (LAB, 2)
    cells = {one["machine_id"]: one["cells"][0] for one in answer["machines"]}
    changed, few = (cells[machine_of(http, lab[name])] for name in ("changed", "few"))
    (change,) = get(http, f"/machines/{machine_of(http, lab['changed'])}/history")["changes"]
    update = changed["update"]
    for name in ("speed_up", "speed_up_low", "speed_up_high"):
        assert update[name] == pytest.approx(change[name])
    assert update["marked"] is True
    assert update["changed"] == [{"name": "driver", "before": "550.9", "after": "560.35"}]
    # The speed now is that of the newest level, not of all runs.
    assert changed["samples_per_second"] == pytest.approx(64e9 / 80_008)
    assert (few["update"]["marked"], few["update"]["speed_up_low"]) == (None, None)
    for cell in (changed, few):
        low, rate, high = (cell[f"samples_per_second{end}"] for end in ("_low", "", "_high"))
        assert low <= rate <= high
        assert low < high


def test_the_page_says_what_the_last_update_changed(http: TestClient, lab: dict[str, str]) -> None:
    text = http.get("/owners/Basel%20lab").text
    (heading,) = re.findall("<h1><bdi>(.*?)</bdi></h1>", text)
    words = "Since driver 550.9 became 560.35, 1 of 2 figures is faster (1.25×), none slower"
    assert heading == words
    assert re.findall(r'<td class="number (\w*)"', text) == ["", "faster"]
    assert "a mark needs four runs a side" in text
    assert len(re.findall('[0-9,]+/s<span class="interval">[0-9,]+ to [0-9,]+/s</span>', text)) == 2
    assert f'href="/machines/{machine_of(http, lab["changed"])}?workload=mnist-cnn' in text
    assert "NVIDIA B200" not in text
    assert "Ada has one run of each figure: measure again after an update" in (
        http.get("/owners/Ada").text
    )
    assert "1.25 times as fast since 2026-10-06" in http.get("/owners/Basel%20lab/feed.atom").text


def test_a_figure_has_one_range_on_every_page_and_in_its_lists(post: Poster) -> None:
    """Of three levels the newest is the middle one, so its rate is the machine's figure. A second
    set-up, nearly as fast, gives it a lead."""
    for day in range(1, 19):
        level = (day - 1) // 6
        result = run(post, CHANGED, day, f"55{level}.9", (100_000, 80_000, 90_000)[level])
    run(post, CHANGED, 19, "552.9", 90_010, recipe="tuned")
    identity = machine_of(post.http, result)
    answer = get(post.http, f"/machines/{identity}")
    (machine,) = get(post.http, f"/owners/{answer['owner']}")["machines"]
    names = ["recipe", *(f"samples_per_second{end}" for end in ("", "_low", "_high"))]
    (place,), (cell,) = answer["places"], machine["cells"]
    assert cell["runs"] == 18
    assert [cell[name] for name in names] == [place[name] for name in names]
    hardware = get(post.http, f"/hardware/{place['hardware_slug']}")
    for head, listed in ((place, answer["figures"]), (hardware["place"], hardware["figures"])):
        (same,) = (one for one in listed if one["recipe"] == head["recipe"])
        assert [same[name] for name in names] == [head[name] for name in names]


@pytest.mark.parametrize(
    ("machines", "words"), [((FEW,), "1 figure is"), ((FEW, OTHERS), "2 figures are")]
)
def test_before_a_change_can_be_marked_the_heading_says_what_it_needs(
    post: Poster, machines: tuple[Any, ...], words: str
) -> None:
    """Two runs of each machine, one on each side of an update."""
    for machine in machines:
        for day, driver in ((1, "550.9"), (2, "560.35")):
            run(post, machine, day, driver, 200_000)
    owner = get(post.http, "/machines")["machines"][0]["owner"]
    (heading,) = re.findall("<h1><bdi>(.*?)</bdi></h1>", post.http.get(f"/owners/{owner}").text)
    assert heading == (
        f"Since driver 550.9 became 560.35, {words} 1.00× as fast; a mark needs four runs a side"
    )


def test_an_owner_has_one_label(post: Poster) -> None:
    post.enroll(OTHER)
    result = post.made(key=OTHER)
    (machine,) = get(post.http, "/machines")["machines"]
    label = machine["owner"]
    assert label.startswith("key-")
    for path in (f"/results/{result}", f"/owners/{label}", f"/machines/{machine['machine_id']}"):
        assert f">{label}</bdi>" in post.http.get(path).text, path


def test_an_owners_page_has_few_machines_and_reads_no_results(
    http: TestClient, store: Store, lab: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "MOST_MACHINES", 1)
    with statements(store) as seen:
        page = http.get("/owners/Basel%20lab").text
    assert "1 machine measured longer ago is not shown" in page
    assert not [one for one, _ in seen if re.search("measurement|submission", one)]


def test_an_unknown_owner_gets_the_nearest_names(http: TestClient, lab: dict[str, str]) -> None:
    for wanted in ("basel", "Basel labb", "BASEL LAB"):
        page = http.get(f"/owners/{wanted}", headers={"Accept": "text/html"})
        assert (page.status_code, '<a href="/owners/Basel%20lab">' in page.text) == (404, True)
        for path, status in (
            *((f"owners/{wanted}", 404), (f"results?owner={wanted}", 422)),
            *((f"machines?owner={wanted}", 422), (f"leaderboard?owner={wanted}", 422)),
            (f"export.csv?owner={wanted}", 422),
        ):
            refused = http.get(f"/api/v1/{path}")
            assert (refused.status_code, refused.json()["field"]) == (status, "owner"), path
            assert f"did you mean {LAB}?" in refused.json()["hint"]


def test_lists_and_boards_have_those_of_one_owner(http: TestClient, lab: dict[str, str]) -> None:
    ids = {machine_of(http, lab[name]) for name in ("changed", "few")}
    assert {one["machine_id"] for one in get(http, "/machines?owner=Basel lab")["machines"]} == ids
    rows = get(http, "/results?owner=Basel lab&limit=200")["results"]
    assert (len(rows), {row["machine_id"] for row in rows}) == (12, ids)
    for group in ("hardware", "setup", "machine"):
        board = get(http, f"/leaderboard?workload=mnist-cnn&owner=Basel lab&group={group}")
        names = [(row["hardware"], row["rank"]) for row in board["rows"]]
        assert names == [("NVIDIA H200", None), ("NVIDIA T4", None)], group
    assert (
        "machines of Basel lab: NVIDIA H200 is fastest"
        in http.get("/?workload=mnist-cnn&owner=Basel lab").text
    )


def test_search_finds_ids_and_owners(http: TestClient, lab: dict[str, str]) -> None:
    ids = {name: machine_of(http, lab[name]) for name in lab}
    found = {
        "ada": {"other"},
        "basel": {"changed", "few"},
        ids["few"][:4]: {"few"},
        ids["few"].upper(): {"few"},
        "nvidia-h200": {"changed"},
        "zz": set(),
    }
    hardware = {"changed": "nvidia-h200", "few": "nvidia-t4", "other": "nvidia-b200"}
    for words, names in found.items():
        machines = get(http, f"/machines?q={words}")["machines"]
        assert {one["machine_id"] for one in machines} == {ids[name] for name in names}, words
        slugs = {one["slug"] for one in get(http, f"/hardware?q={words}")["hardware"]}
        assert slugs == {hardware[name] for name in names}, words
        listed = get(http, f"/results?q={words}&limit=200")["results"]
        assert {row["machine_id"] for row in listed} == {ids[name] for name in names}, words
        rows = get(http, f"/leaderboard?workload=mnist-cnn&group=machine&q={words}")["rows"]
        assert {row["machine_id"] for row in rows} == {ids[name] for name in names}, words
    (one,) = get(http, f"/results?q={lab['few'][:12]}")["results"]
    assert one["id"] == lab["few"]
    result = lab["few"][:12]
    for words, place in (
        ("Basel lab", "/owners/Basel%20lab"),
        ("basel", "/machines?q=basel"),
        (ids["few"][:4], f"/machines?q={ids['few'][:4]}"),
        (result, f"/results?q={result}"),
    ):
        moved = http.get(f"/?q={words}", follow_redirects=False)
        assert (moved.status_code, moved.headers.get("location")) == (302, place), words
    # The search of a board is typed letter by letter, and never leaves it.
    for words in ("h200", "zz", "Ada", "basel", ids["few"][:4]):
        for query in (f"q={words}&workload=mnist-cnn", f"q={words}&group=setup"):
            assert http.get(f"/?{query}", follow_redirects=False).status_code == 200, query
    for words in ("h200", "zz"):
        assert http.get(f"/?q={words}", follow_redirects=False).status_code == 200, words


def test_results_have_a_time_filter_and_two_orders(http: TestClient, lab: dict[str, str]) -> None:
    newest = get(http, "/results?limit=200")["results"]
    assert get(http, "/results?limit=200&sort=-received_at")["results"] == newest
    oldest: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = get(http, f"/results?limit=5&sort=received_at&cursor={cursor}")
        oldest, cursor = oldest + page["results"], page["next_cursor"]
    assert oldest == newest[::-1]
    later = newest[3]["received_at"]
    assert get(http, f"/results?received_after={later}")["results"] == newest[:3]
    assert get(http, "/results?received_after=9999-01-01")["results"] == []
    assert http.get("/results?received_after=2026-01-01").status_code == 200
    for wrong in ("nope", "0001-01-01T00:00:00%2B14:00"):
        answer = http.get(f"/api/v1/results?received_after={wrong}")
        assert (answer.status_code, answer.json()["field"]) == (422, "received_after")


def test_a_result_has_the_range_of_its_blocks(post: Poster) -> None:
    page = post.http.get(f"/results/{post.made()}").text
    (found,) = re.findall(r"<small>its blocks: ([0-9,]+) to ([0-9,]+)</small>", page)
    low, high = (float(one.replace(",", "")) for one in found)
    assert low < 64_000 < high
