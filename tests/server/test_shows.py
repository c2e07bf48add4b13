"""What a result shows, in the API and on its page; the page of the trust levels."""

import html
import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update
from tests.fakes import results, trusted
from tests.fakes.client import Poster
from tests.fakes.projected import settle

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.training.measured_limits import NO_CURVE
from bench_protocol.trust import shows, trust_levels
from bench_server.checks import submission as submission_checks
from bench_server.checks import table as result_checks
from bench_server.db.store import Store
from bench_server.db.tables import Measurement, table_of

pytestmark = pytest.mark.sqlite


def statuses(http: TestClient, result_id: str) -> dict[str, str]:
    answer = http.get(f"/api/v1/results/{result_id}").json()
    return {one["what"]: one["status"] for one in answer["shows"]}


def test_each_check_belongs_to_a_claim() -> None:
    known = {name for row in shows.ROWS for name in row.checks}
    submitted = {name for name, _, _ in submission_checks.CHECKS}
    assert known == result_checks.NAMES | submitted | {"outlier"}


def test_a_result_says_what_it_shows_before_and_after_its_recomputation(
    http: TestClient, post: Poster, store: Store
) -> None:
    (sent,) = trusted.send(store, results.private_key(), [1_000_000], projected=False)
    answer = http.get(f"/api/v1/results/{sent}").json()
    assert answer["trust_level"] == 2
    assert answer["assurance"] == "self_attested"
    assert answer["level_needs"] == "level 3: the server has not recomputed it yet"
    assert statuses(http, sent)["session"] == "pending"
    settle(store)
    answer = http.get(f"/api/v1/results/{sent}").json()
    assert (answer["trust_level"], answer["assurance"]) == (3, "third_party")
    after = statuses(http, sent)
    assert after["session"] == after["fresh"] == "holds"
    assert after["speed"] == after["hardware"] == "not_checked"


def test_the_page_of_a_result_has_the_same_claims(http: TestClient, post: Poster) -> None:
    for made in (results.make_result(), results.make_failure()):
        result_id = post(made)
        answer = http.get(f"/api/v1/results/{result_id}").json()
        page = html.unescape(http.get(f"/results/{result_id}").text)
        for one in answer["shows"]:
            assert one["sentence"][1:] in page
            assert f'href="{one["section"]}"' in page
        assert f'href="/trust#level-{answer["trust_level"]}"' in page
    of_failure = {one["what"]: one["sentence"] for one in answer["shows"]}
    measured = of_failure.keys() - {"signature", "log", "selection"}
    assert {of_failure[what] for what in measured} == {"nothing was measured"}


def test_the_page_of_the_levels_has_all_sections(http: TestClient) -> None:
    page = html.unescape(http.get("/trust").text)
    anchors = set(re.findall(r'id="([\w-]+)"', page))
    assert {row.what for row in shows.ROWS} <= anchors
    for level in trust_levels.LEVELS:
        assert f"level-{level.number}" in anchors
        assert level.needs in page
        assert level.still in page
    for words in (words for row in shows.ROWS for words in (row.shows, row.does_not)):
        assert page.count(f"{words[1:]}</td>") == 1
    assert page.count("Does not show</th>") == 1


def test_no_fact_of_a_workload_is_empty(http: TestClient) -> None:
    for workload in CATALOGUE:
        assert "<dd></dd>" not in http.get(f"/workloads/{workload.name}").text


def test_pages_and_answers_say_what_was_not_measured_for_a_workload(
    http: TestClient, post: Poster
) -> None:
    for workload, missing in (("mnist-cnn", [NO_CURVE]), ("fashion-mlp", [])):
        result = post.made(cell=results.make_cell(workload))
        listed = {one["name"]: one for one in http.get("/api/v1/workloads").json()}
        assert listed[workload]["not_measured"] == missing
        assert http.get(f"/api/v1/results/{result}").json()["not_measured"] == missing
        for page in (f"/workloads/{workload}", f"/results/{result}"):
            assert (NO_CURVE in http.get(page).text) is bool(missing)


def test_nothing_is_said_to_be_missing_of_failures_and_workloads_that_left(
    http: TestClient, post: Poster, store: Store
) -> None:
    failed, left = post(results.make_failure()), post.made()
    with store.writing() as session:
        session.connection().execute(
            update(table_of(Measurement))
            .where(table_of(Measurement).c.submission_id == left)
            .values(workload="old-cnn", workload_digest="0" * 64)
        )
    for result in (failed, left):
        assert http.get(f"/api/v1/results/{result}").json()["not_measured"] == []
        assert http.get(f"/results/{result}").status_code == 200
