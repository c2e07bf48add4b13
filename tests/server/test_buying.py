"""What hardware is, what it costs, and what its energy costs."""

import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fakes import results
from tests.fakes.client import Poster, get

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.hardware import clean
from bench_protocol.payload.readings import Energy
from bench_server.answers import specifications
from bench_server.settings import Settings

CUDA, METAL = Device(kind="cuda"), Device(kind="metal")
RTX, OTHER, MAC = "nvidia-geforce-rtx-4090", "nvidia-geforce-rtx-3090", "apple-m2-max-30-core-gpu"
LIST = """
currency = "EUR"
date = 2026-11-01
energy_per_kwh = 0.30
[hardware]
nvidia-geforce-rtx-4090 = 2000
apple-m2-max-30-core-gpu = 3000
"""


@pytest.fixture
def database_url(migrated_file: Path, tmp_path: Path) -> str:
    """SQLite alone: no query here is unlike those of other tests."""
    return f"sqlite:///{shutil.copy(migrated_file, tmp_path / 'server.db')}"


def card(name: str, seed: int, **gpu: Any) -> Any:
    made = results.make_machine("AMD Ryzen 9 7950X", ("cuda", name, None), seed=seed)
    return made.model_copy(update={"gpus": (made.gpus[0].model_copy(update=gpu),)})


@pytest.fixture
def fleet(post: Poster) -> Poster:
    told = {"memory_bytes": 24564 * 2**20, "power_limit_watts": 400.0}
    mac = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=3)
    for made, device, scope, step_ns, joules in (
        (card("NVIDIA GeForce RTX 4090", 1, **told), CUDA, "gpu", 100_000, 40_000),
        (card("NVIDIA GeForce RTX 3090", 2), CUDA, "gpu", 200_000, 60_000),
        (mac, METAL, "soc", 400_000, 10_000),
    ):
        cell = results.make_cell(device=device)
        energy = Energy(source="nvml", scope=scope, energy_mj=joules, window_ns=10**9)
        for run in (1, 2, 3):
            measured = results.make_measurement(cell, step_ns + 100 * run, energy=energy)
            post.made(cell=cell, machine=made, measurement=measured)
    return post


def specified(post: Poster, slug: str) -> dict[str, tuple[list[float], bool, str]]:
    stated = get(post.http, f"/hardware/{slug}")["specifications"]
    return {one["property"]: (one["values"], one["reported"], one["source"]) for one in stated}


def chart(page: str, by: str) -> str:
    return page.partition(f"by {by}")[2].partition("</figure>")[0]


def test_what_results_report_goes_before_what_the_maker_states(fleet: Poster) -> None:
    rtx, other, mac = (specified(fleet, slug) for slug in (RTX, OTHER, MAC))
    assert rtx["memory_bytes"][0] == [24564 * 2**20]
    assert rtx["power_limit_watts"][:2] == ([400], True)
    assert rtx["cores"][:2] == ([128], False)
    assert "white paper" in rtx["cores"][2]
    assert other["power_limit_watts"][:2] == ([350], False)
    assert (mac["cores"][0], mac["year"][0]) == ([30], [2023])
    assert "power_limit_watts" not in mac
    # Values of machines that differ are all given.
    for seed, watts in ((4, 450.0), (5, 300.0)):
        made = card("NVIDIA GeForce RTX 4090", seed, power_limit_watts=watts)
        fleet.made(cell=results.make_cell(device=CUDA), machine=made)
    assert specified(fleet, RTX)["power_limit_watts"][0] == [300, 400, 450]


def price(amount: float, basis: str, **of: Any) -> dict[str, Any]:
    return {"amount": amount, "currency": None, "date": None, "basis": basis, "part": None} | of


def test_prices_at_launch_are_the_last_resort(fleet: Poster) -> None:
    launch = price(1599, "launch", currency="USD", date="2022-10-12", part="graphics card")
    assert get(fleet.http, f"/hardware/{RTX}")["price"] == launch
    assert get(fleet.http, f"/hardware/{MAC}")["price"] is None
    assert get(fleet.http, f"/hardware/{RTX}?price.{RTX}=1200")["price"] == price(1200, "reader")
    text = fleet.http.get(f"/api/v1/compare.jsonl?ids={RTX},{OTHER}&price.{RTX}=1500").text
    first, second = map(json.loads, text.splitlines())
    assert (first["price"], first["price_currency"]) == (1500, None)
    assert (second["price"], second["price_currency"]) == (1499, "USD")
    low, middle, high = (second[f"overall_speed_up{end}"] for end in ("_low", "", "_high"))
    assert low < middle < high


def test_a_comparison_says_what_each_is_worth_before_both_prices_are_known(fleet: Poster) -> None:
    """The Mac's price is unknown, the card's is that at launch."""
    for ids, prices, words in (
        ((MAC, RTX), "", lambda speed: f"Equal speed per price at {people.times(speed)} times the"),
        (
            (RTX, MAC),
            "",
            lambda speed: f"Equal speed per price at {people.money(1599 * speed)} USD<",
        ),
        ((RTX, MAC), f"&price.{MAC}=3198", lambda speed: f"{people.ratio(speed / 2)} the speed"),
    ):
        query = f"/compare?ids={','.join(ids)}{prices}"
        speed = get(fleet.http, query)["things"][1]["speed_up"]
        text = fleet.http.get(query).text
        assert words(speed) in text
        assert '<a class="quiet" href="#choose">Enter prices</a>' in text
    board = fleet.http.get("/?workload=mnist-cnn&sort=price").text
    assert re.findall('class="interval">([0-9]+)/s per USD<', board) == ["213", "399"]


def test_the_operators_list_replaces_prices_at_launch_and_prices_energy(
    fleet: Poster, tmp_path: Path
) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(LIST)
    fleet.http.app.state.settings = Settings(prices=path)  # type: ignore[attr-defined]
    compared = get(fleet.http, f"/compare?ids={RTX},{OTHER},{MAC}")
    prices = [thing["price"] for thing in compared["things"]]
    # The 3090 has a price at launch, which is of another day and in another currency.
    ours = price(2000, "operator", currency="EUR", date="2026-11-01")
    assert prices[:2] == [ours, None]
    rtx, other, _ = compared["rows"][0]["cells"]
    a_price = rtx["samples_per_second"] / 2000
    assert rtx["samples_per_second_per_price"] == pytest.approx(a_price)
    assert other["samples_per_second_per_price"] is None
    own = get(fleet.http, f"/compare?ids={RTX},{MAC}&price.{MAC}=2500")["things"]
    assert [thing["price"]["basis"] for thing in own] == ["operator", "reader"]
    answer = get(fleet.http, f"/hardware/{RTX}")
    (figure,) = answer["figures"]
    assert answer["energy_currency"] == "EUR"
    cost = figure["joules_per_epoch"] / 3.6e6 * 0.3
    assert figure["energy_cost_per_epoch"] == pytest.approx(cost)
    for page in (f"/hardware/{RTX}", f"/machines/{answer['machines'][0]['machine_id']}"):
        assert "EUR for 1,000 epochs" in fleet.http.get(page).text
    assert get(fleet.http, f"/hardware/{RTX}?energy_price=1")["energy_currency"] is None


def test_the_energy_of_an_epoch_has_a_cost_where_energy_has_a_price(fleet: Poster) -> None:
    (figure,) = get(fleet.http, f"/hardware/{RTX}")["figures"]
    assert figure["energy_cost_per_epoch"] is None
    (figure,) = get(fleet.http, f"/hardware/{RTX}?energy_price=0.36")["figures"]
    assert figure["energy_cost_per_epoch"] == pytest.approx(figure["joules_per_epoch"] * 1e-7)
    compared = get(fleet.http, f"/compare?ids={RTX},{OTHER}&energy_price=0.36")
    cell = compared["rows"][0]["cells"][0]
    for field in ("joules_per_epoch", "energy_cost_per_epoch"):
        assert cell[field] == pytest.approx(figure[field])
    of_all = f"/api/v1/compare?ids={RTX},{OTHER}"
    for field, wrong in itertools.product(
        ("energy_price", f"price.{RTX}"), ("0", "-1", "nan", "inf", "x")
    ):
        refused = fleet.http.get(f"{of_all}&{field}={wrong}")
        assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert fleet.http.get(f"{of_all}&price.other=3").status_code == 422
    # Energies of different scopes are no ratio.
    _, other, mac = get(fleet.http, f"/compare?ids={RTX},{OTHER},{MAC}")["things"]
    # Three times the energy in the same window over twice the time a step.
    assert other["relative_energy"] == pytest.approx(3, rel=0.01)
    assert mac["relative_energy"] is None
    assert fleet.http.get(f"/hardware/{RTX}?energy_price=&price.{RTX}=").status_code == 200


def test_machines_of_a_hardware_have_speeds_in_the_set_up_of_its_place(post: Poster) -> None:
    cell = results.make_cell(device=CUDA)
    for seed, step_ns in ((1, 100_000), (2, 90_000)):
        for run in (1, 2, 3):
            made = card("NVIDIA GeForce RTX 4090", seed)
            post.made(cell=cell, machine=made, step_ns=step_ns + run)
    third = card("NVIDIA GeForce RTX 4090", 3)
    post.made(cell=results.make_cell(device=CUDA, recipe="tuned"), machine=third, step_ns=300_000)
    answer = get(post.http, f"/hardware/{RTX}")
    first, second, without = (one["samples_per_second"] for one in answer["machines"])
    assert answer["machines"][0]["samples_per_second_low"] < first
    assert first > second == answer["place"]["samples_per_second"]
    assert without is None
    page = post.http.get(f"/hardware/{RTX}").text
    places = [page.index(one["machine_id"]) for one in answer["machines"][:2]]
    assert places == sorted(places)


def test_pages_show_specifications_and_charts(fleet: Poster) -> None:
    page = fleet.http.get(f"/hardware/{RTX}?energy_price=0.3").text
    for words in (
        *("400 W", "24.0 GiB", "1,599 USD", "card alone, at launch, 2022-10-12"),
        *("for 1,000 epochs", "Enter both prices in one currency", ">Specifications</h2>"),
        *("Speed in mnist-cnn by price", "Price at launch in USD"),
    ):
        assert words in page, words
    assert page.index('id="w-mnist-cnn"') < page.index('id="facts"') < page.index('id="worth"')
    # One more GPU has energies of this scope; the Mac's are of another.
    assert "NVIDIA GeForce RTX 3090" in chart(page, "energy")
    assert "Apple" not in chart(page, "energy")
    alone = fleet.http.get(f"/hardware/{MAC}").text
    assert "No price of Apple M2 Max (30-core GPU) is known." in alone
    assert "by energy" not in alone
    compared = fleet.http.get(f"/compare?ids={RTX},{OTHER}").text
    assert "Speed by price, both axes logarithmic" in compared
    assert "Speed by energy" in compared


def test_a_chart_by_price_names_what_it_does_not_draw(fleet: Poster) -> None:
    """No price is dropped in silence, and a processor's is not compared with a card's."""
    i7 = results.make_machine("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", seed=4)
    fleet.made(machine=i7, step_ns=2_000_000)
    ids, cpu = f"{RTX},{OTHER},{MAC},intel-core-i7-8700", "price.intel-core-i7-8700=900"
    for path in (f"/hardware/{RTX}", f"/compare?ids={ids}"):
        drawn = chart(fleet.http.get(path).text, "price")
        assert "no price is known: Apple M2 Max (30-core GPU)." in drawn, path
        assert "prices at launch are not of a graphics card: Intel Core i7-8700." in drawn, path
        assert "is of the graphics card alone" in drawn, path
        assert "Intel Core i7-8700: " not in drawn, path
    own = fleet.http.get(f"/compare?ids={ids}&{cpu}&price.{MAC}=2500").text
    assert "Intel Core i7-8700: speed" in chart(own, "price")
    assert "Not drawn" not in own
    none = fleet.http.get(f"/compare?ids={MAC},intel-core-i7-8700").text
    assert "no price is known: Apple M2 Max (30-core GPU)." in none


def test_compared_set_ups_are_told_apart_by_name_in_a_chart(fleet: Poster) -> None:
    board = fleet.http.get("/?group=setup&workload=mnist-cnn").text
    ids = re.findall(r'name="ids" value="(setup-\w+)"', board)
    things = get(fleet.http, f"/compare?ids={','.join(ids)}")["things"]
    assert len(things) == 3
    page = fleet.http.get(f"/compare?ids={','.join(ids)}").text
    for by, axis in (("price", "Price at launch in USD"), ("energy", "Energy of the same work")):
        figure = chart(page, by)
        assert f'<p class="axis-title x-title quiet">{axis}' in figure
        assert f'<p class="axis-title quiet">Times as fast as {things[0]["name"]}</p>' in figure
        keys = re.findall(r'<li class="c(\d)">.*?</svg>(.*?)</li>', figure)
        assert dict(keys) == {str(n + 1): thing["name"] for n, thing in enumerate(things[:2])}


def test_a_price_list_that_is_none_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    with pytest.raises(ValidationError, match="cannot be read"):
        Settings(prices=path)
    for text in (
        *("currency = 1", LIST.replace("EUR", "euro"), LIST.replace("2000", "0"), "["),
        *(LIST.replace("2000", '"dear"'), LIST + "\n[other]\na = 1"),
    ):
        path.write_text(text)
        with pytest.raises(ValidationError) as refused:
            Settings(prices=path)
        assert refused.value.errors()[0]["loc"][0] == "prices", text


def test_every_stated_value_names_its_source() -> None:
    table = specifications._table()
    used = set()
    for name, entry in table["hardware"].items():
        assert clean(name) == name, f"{name}: not as boards write it"
        for key, (value, source, *rest) in entry.items():
            assert key in {"memory_gib", "cores", "power_limit_watts", "year", "price"}
            assert value > 0
            assert re.fullmatch("[A-Z]{3}", rest[0]) if key == "price" else not rest
            assert key != "price" or rest[2] in {"graphics card", "processor"}
            used.add(source)
    assert used == table["sources"].keys()
